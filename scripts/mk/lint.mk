# Static checks. clang-tidy is by far the slowest, so it leaves a stamp per source and looks again only at what changed.
.PHONY: lint lint-tidy
lint: $(B)/gen/herschel.skel.h
	@MAKE='$(MAKE)' scripts/lint $(B)

# The analyzer behind clang-tidy follows each function along so many states of the program (clang's default is 225,000), and
# nearly all of the time goes there: on a third of them it takes half the time or less. HB_LINT_THIRD=0, 1 or 2 names the third of
# the sources that are followed as far as that; the others a third as far, with all the same checks. Without it all are followed
# all the way.
TIDY_SRC := $(SRC) user/main.c
NEAR     := -Xclang -analyzer-config -Xclang max-nodes=75000
ifneq ($(HB_LINT_THIRD),)
FAR_SRC  := $(shell printf '%s\n' $(TIDY_SRC) | awk 'NR % 3 == $(HB_LINT_THIRD) % 3')
else
FAR_SRC  := $(TIDY_SRC)
endif
NEAR_SRC := $(filter-out $(FAR_SRC),$(TIDY_SRC))

define tidy
@mkdir -p $(@D)
@clang-tidy --quiet $< -- $(CSTD) $(CPPFLAGS) -isystem $(B)/gen $(WARN) $(1) 2> $@.err || { cat $@.err; exit 1; }
@$(CC) $(CSTD) $(CPPFLAGS) -MM -MP -MT $@ -MF $@.d $<
@touch $@
endef
lint-tidy: $(FAR_SRC:%.c=$(B)/lint/%.tidy) $(NEAR_SRC:%.c=$(B)/lint/%.near)
$(B)/lint/%.tidy: %.c .clang-tidy $(B)/gen/herschel.skel.h
	$(call tidy)
$(B)/lint/%.near: %.c .clang-tidy $(B)/gen/herschel.skel.h
	$(call tidy,$(NEAR))
-include $(TIDY_SRC:%.c=$(B)/lint/%.tidy.d) $(TIDY_SRC:%.c=$(B)/lint/%.near.d)
