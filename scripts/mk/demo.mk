.PHONY: demo
demo:
	@MAKE='$(MAKE)' scripts/demo $(B)
