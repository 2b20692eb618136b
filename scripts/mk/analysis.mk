# docs/ndjson.md holds what the exporter says of itself; a unit test fails when they differ, this writes it.
.PHONY: docs-ndjson
docs-ndjson: $(B)/tests/unit/test_export
	@HB_UPDATE_DOCS=1 $< >/dev/null 2>&1 || true
	@$<

# How fast a window is read, counted and exported (BENCH_REPORT=10: million records).
BENCH_REPORT ?= 10
$(B)/tests/bench/bench_report: tests/bench/bench_report.c $(B)/libhb.a
	@mkdir -p $(@D)
	$(CC) $(CSTD) $(CPPFLAGS) $(CFLAGS) $(WARN) -MMD -MP $< -o $@ $(B)/libhb.a $(LIBS)
.PHONY: bench-report
bench: bench-report
bench-report: $(B)/tests/bench/bench_report
	$< $(BENCH_REPORT)
