# Benchmarks: `make bench` runs all of them, one after the other, and prints which targets were met. None is part of
# `make check`: figures depend on the machine and on who else is on it. docs/performance.md says what was measured.
BENCH_BIN := $(patsubst %.c,$(B)/%,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))

$(B)/tests/bench/bench_emit.bpf.o: tests/bench/bench_emit.bpf.c $(B)/gen/vmlinux.h
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(B)/gen/bench_emit.skel.h: $(B)/tests/bench/bench_emit.bpf.o
	$(BPFTOOL) gen skeleton $< name bench_emit > $@
$(B)/tests/bench/bench_collect: | $(B)/gen/bench_emit.skel.h
$(BENCH_BIN): $(B)/%: %.c $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP $< -o $@ $(B)/libhb.a $(LIBS) -lm

BENCH_WINDOW ?= 10 3
BENCH_REPORT ?= 10
BENCH_EXPORT ?= 3
BENCH_ANALYZE ?= 5
BENCH_IMPORT ?= 1000
BENCH_ATTACH ?= 1 20
BENCH_PY     := HB_BUILD=$(abspath $(B)) python3

.PHONY: bench-build bench-window bench-report bench-analyze bench-hta bench-export bench-collect bench-trace bench-attach bench-engine bench-startup
bench-build: all sim $(BENCH_BIN)
# Million records and streams written; million records read; analysed; million records, or a window file, exported.
bench-window: bench-build
	@$(B)/tests/bench/bench_window $(BENCH_WINDOW)
bench-report: bench-build
	@$(B)/tests/bench/bench_report $(BENCH_REPORT)
bench-analyze: bench-build
	@$(B)/tests/bench/bench_analyze $(BENCH_ANALYZE)
bench-export: bench-build
	@$(B)/tests/bench/bench_export $(BENCH_EXPORT)
# MB of JSON, or a trace, imported.
bench-import: bench-build
	@$(B)/tests/bench/bench_import $(BENCH_IMPORT)
# Copies of a trace, and the trace: against HTA, which it installs. Not in `make bench`, which needs no network.
BENCH_HTA ?= 20
bench-hta: all
	@$(BENCH_PY) tests/bench/bench_hta.py $(BENCH_HTA)
bench-collect: bench-build
	@$(B)/tests/bench/bench_collect
bench-trace: bench-build
	@$(BENCH_PY) tests/bench/bench_trace.py
bench-attach: bench-build
	@$(BENCH_PY) tests/bench/bench_attach.py $(BENCH_ATTACH)
bench-engine: bench-build
	@$(BENCH_PY) tests/bench/bench_engine.py
bench-startup: bench-build
	@$(BENCH_PY) tests/bench/bench_startup.py
# In turn also under -j: they would measure each other.
bench: bench-build
	@for b in window report analyze export import collect trace attach engine startup; do echo "== $$b"; $(MAKE) --no-print-directory -s bench-$$b || exit; done
