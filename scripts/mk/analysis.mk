# docs/ndjson.md holds what the exporter says of itself; a unit test fails when they differ, this writes it.
.PHONY: docs-ndjson
docs-ndjson: $(B)/tests/unit/test_export
	@HB_UPDATE_DOCS=1 $< >/dev/null 2>&1 || true
	@$<
# docs/patterns.md likewise, from the descriptors of the patterns.
.PHONY: docs-patterns
docs-patterns: $(B)/tests/unit/test_patterns_list
	@HB_UPDATE_DOCS=1 $< >/dev/null 2>&1 || true
	@$<
