# Speed and size of each export format: `make bench-export` (BENCH_EXPORT=3: million records, or a window file).
BENCH_EXPORT ?= 3
$(B)/tests/bench/bench_export: tests/bench/bench_export.c $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP $< -o $@ $(B)/libhb.a $(LIBS)
.PHONY: bench-export
bench: bench-export
bench-export: $(B)/tests/bench/bench_export
	nice $< $(BENCH_EXPORT)
