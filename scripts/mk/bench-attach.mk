# Attach and detach of one and of many processes: `make bench-attach` (BENCH_ATTACH="1 20": numbers of processes).
BENCH_ATTACH ?= 1 20
.PHONY: bench-attach
bench-attach: all sim
	@HB_BUILD=$(abspath $(B)) python3 tests/bench/bench_attach.py $(BENCH_ATTACH)
