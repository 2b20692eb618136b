# Speed and size of the window file: `make bench-window` (BENCH_WINDOW="10 4": million records, streams).
BENCH_WINDOW ?= 10 4
$(B)/tests/bench/bench_window: tests/bench/bench_window.c $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP $< -o $@ $(B)/libhb.a $(LIBS) -lm
.PHONY: bench-window
bench: bench-window
bench-window: $(B)/tests/bench/bench_window
	$< $(BENCH_WINDOW)
