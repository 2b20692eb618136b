# Tests. `make check` ends with one line, "N passed, N failed, N skipped", over all its suites (scripts/check).
.PHONY: check check-engines check-scenarios check-all unit-build analysis-alone test-programs bench help
CHECK := MAKE='$(MAKE)' scripts/check --build $(B)

check: test-setup
	@$(CHECK) lint unit asan analysis sim e2e
# Real LLM engines, a third of them in each run: installs them into HB_CACHE (GiB, minutes), or says why it cannot.
check-engines:
	@scripts/engines-setup $(B)
	@$(CHECK) --name engines engines
# Planted causes that `analyze` has to name, with their healthy twins: a third of them in each run.
check-scenarios: test-setup
	@$(CHECK) --name scenarios scenarios
check-all: test-setup
	@scripts/engines-setup $(B)
	@HB_ENGINES_ALL=1 $(CHECK) --name all lint unit asan analysis sim e2e scenarios torch engines fuzz

# Root may install what the tests need; anybody else is told, and tests that need it skip or fail with the reason.
.PHONY: test-setup
test-setup:
	@if scripts/setup --test --list >/dev/null 2>&1; then :; \
	elif [ "$$(id -u)" = 0 ]; then scripts/setup --test; \
	else echo "not installed: $$(scripts/setup --test --list 2>/dev/null | tr '\n' ' ')- run: sudo scripts/setup --test"; fi

unit-build: $(UNIT_BIN)

# The analysis of a window file must run where libbpf and libelf are not installed: link all of it without them.
ANALYSIS_OBJ := $(filter $(B)/user/base/% $(B)/user/schema/% $(B)/user/window/% $(B)/user/planfile/% $(B)/user/analysis/%,$(OBJ))
analysis-alone: $(ANALYSIS_OBJ) $(B)/gen/exporters.o $(B)/gen/patterns.o $(B)/gen/sysno.o $(B)/gen/api_names.o $(B)/gen/html.o $(B)/gen/peaks.o
	@echo 'int main(void){return 0;}' > $(B)/analysis-alone.c
	$(CC) $(CFLAGS) -o $(B)/analysis-alone $(B)/analysis-alone.c $^ \
	  $(shell pkg-config --libs libzstd zlib yajl 2>/dev/null) -liberty -lpthread -lm
	@! ldd $(B)/analysis-alone | grep -E 'libbpf|libelf|libdw'

# What the end-to-end tests start. The parts add to these two in their own scripts/mk/*.mk, with lines such as
# `test-programs: $(B)/sim/libcuda.so.1` and `bench: bench-window`.
test-programs: sim
bench: all

help:
	@echo 'make                  build/herschel-bpf'
	@echo 'make demo             install what is missing (as root), trace a live engine on the simulated accelerator, report'
	@echo 'make check            lint, unit tests (plain and with sanitizers), end-to-end tests'
	@echo 'make check-engines    install real LLM engines into HB_CACHE and trace a third of them'
	@echo 'make check-scenarios  trace a third of the planted causes and their healthy twins, and judge what is said of them'
	@echo 'make check-all        all of the above and a short fuzz run'
	@echo 'make bench            speed figures, as ratios within one run'
	@echo 'make lint             static checks; make format rewrites the C sources in the house style'
	@echo 'make fuzz             libFuzzer on the table parser, the window reader and the ELF reader'
	@echo 'make kernel-matrix    the static program on other kernels under emulation'
	@echo 'make docs-ndjson      the type tables of docs/ndjson.md, from the declarations'
	@echo 'make docs-patterns    docs/patterns.md, from the descriptors of the patterns'
	@echo 'make docs-roofline    the tables of docs/roofline.md, from the formulas'
	@echo 'make install          into DESTDIR and PREFIX (/usr/local)'
	@echo 'make static           build/static/herschel-bpf, for machines with another C library'
	@echo 'make clean            remove the build folder'
	@echo 'Variables: B (build folder), CC, CLANG, BPFTOOL, CFLAGS, PREFIX, DESTDIR, VMLINUX_BTF, HB_CACHE'
