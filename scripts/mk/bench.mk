# Benchmarks in C, one program a file; `make bench` runs them and tests/bench/run.py. None of them is part of `make check`.
BENCH_BIN := $(B)/tests/bench/bench_collect $(B)/tests/bench/bench_bystander
$(B)/tests/bench/bench_emit.bpf.o: tests/bench/bench_emit.bpf.c $(B)/gen/vmlinux.h
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(B)/gen/bench_emit.skel.h: $(B)/tests/bench/bench_emit.bpf.o
	$(BPFTOOL) gen skeleton $< name bench_emit > $@
$(B)/tests/bench/bench_collect: $(B)/gen/bench_emit.skel.h
$(BENCH_BIN): $(B)/%: %.c $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP $< -o $@ $(B)/libhb.a $(LIBS) -lm
