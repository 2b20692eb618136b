# Static checks. clang-tidy is by far the slowest, so it leaves a stamp per source and looks again only at what changed.
.PHONY: lint lint-tidy
lint: $(B)/gen/herschel.skel.h
	@MAKE='$(MAKE)' scripts/lint $(B)

TIDY_SRC := $(SRC) user/main.c
lint-tidy: $(TIDY_SRC:%.c=$(B)/lint/%.tidy)
$(B)/lint/%.tidy: %.c .clang-tidy $(B)/gen/herschel.skel.h
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- $(CSTD) $(CPPFLAGS) -isystem $(B)/gen $(WARN) 2> $@.err || { cat $@.err; exit 1; }
	@$(CC) $(CSTD) $(CPPFLAGS) -MM -MP -MT $@ -MF $@.d $<
	@touch $@
-include $(TIDY_SRC:%.c=$(B)/lint/%.tidy.d)
