# Fuzzers: every tests/fuzz/fuzz_NAME.c is a libFuzzer target, built with ASan and UBSan against all of the program but
# the session (which needs a kernel) and the command line. It starts from what tests/fuzz/seed_NAME.c (a program) or
# seed_NAME.sh writes into the folder given to it, and from tests/fuzz/corpus_NAME/, where there are such.
#   make fuzz [FUZZ_SECONDS=20] [FUZZ=window]     crashes are left in build/fuzz/NAME.crash-*
FUZZ_SECONDS ?= 20
FUZZ         ?= $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FB           := $(B)/fuzz
FUZZ_SAN     := -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
FUZZ_LIB_SAN := $(FUZZ_SAN) -fsanitize=fuzzer-no-link,address,undefined
FUZZ_CC       = $(CLANG) $(CSTD) $(CPPFLAGS) -Wall -Wno-unknown-warning-option -MMD -MP
FUZZ_OBJ     := $(patsubst %.c,$(FB)/%.o,$(filter-out user/capture/session/% user/cli/%,$(SRC))) \
		$(patsubst $(B)/%.c,$(FB)/%.o,$(GEN_SRC))

$(FB)/gen/%.o: $(B)/gen/%.c
	@mkdir -p $(@D)
	@$(FUZZ_CC) $(FUZZ_LIB_SAN) -c $< -o $@
$(FB)/%.o: %.c
	@mkdir -p $(@D)
	@$(FUZZ_CC) $(FUZZ_LIB_SAN) -c $< -o $@
$(FB)/libhb.a: $(FUZZ_OBJ)
	@rm -f $@
	@ar rcs $@ $^
$(FB)/fuzz_%: tests/fuzz/fuzz_%.c $(FB)/libhb.a
	$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer,address,undefined $< -o $@ $(FB)/libhb.a $(LIBS)
$(FB)/seed_%: tests/fuzz/seed_%.c $(FB)/libhb.a
	$(FUZZ_CC) $(FUZZ_LIB_SAN) -fsanitize=address,undefined $< -o $@ $(FB)/libhb.a $(LIBS)

# Seeds are made anew on each run; what the fuzzer finds interesting goes to NAME.corpus and is used again.
.PHONY: fuzz fuzz-build $(FUZZ:%=fuzz-run-%)
fuzz-build: $(FUZZ:%=$(FB)/fuzz_%)
fuzz: $(FUZZ:%=fuzz-run-%)
$(foreach n,$(FUZZ),$(if $(wildcard tests/fuzz/seed_$(n).c),$(eval fuzz-run-$(n): $(FB)/seed_$(n))))
$(FUZZ:%=fuzz-run-%): fuzz-run-%: $(FB)/fuzz_%
	@rm -rf $(FB)/$*.seeds; mkdir -p $(FB)/$*.seeds $(FB)/$*.corpus
	@if [ -x $(FB)/seed_$* ]; then $(FB)/seed_$* $(FB)/$*.seeds; fi
	@if [ -f tests/fuzz/seed_$*.sh ]; then bash tests/fuzz/seed_$*.sh $(FB)/$*.seeds; fi
	@log=$(FB)/$*.log; dict=tests/fuzz/$*.dict; extra=tests/fuzz/corpus_$*; \
	nice $< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
	  -artifact_prefix=$(FB)/$*.crash- $$([ -f $$dict ] && echo -dict=$$dict) \
	  $(FB)/$*.corpus $(FB)/$*.seeds $$([ -d $$extra ] && echo $$extra) > $$log 2>&1; rc=$$?; \
	if [ $$rc != 0 ]; then tail -60 $$log; echo "fuzz $*: FAILED, see $$log and $(FB)/$*.crash-*"; exit 1; fi; \
	echo "fuzz $*: $$(sed -n 's/^stat::number_of_executed_units: *//p' $$log) inputs in $(FUZZ_SECONDS) s, no fault; $$(grep -o 'cov: [0-9]*' $$log | tail -1)"
