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

# What a call is, by its name, for imported traces: the probe tables' own words. A table's `api` line goes before its rows.
$(B)/gen/api_names.c: $(TABLES) scripts/mk/analysis.mk
	@mkdir -p $(@D)
	@{ echo '#include "analysis/import/api.h"'; echo 'const struct hb_api_name hb_api_names[] = {'; \
	  awk '$$1 == "api" { api = $$2 } \
	    /^[^#]/ && $$1 != "api" && NF > 3 { handle = "handle"; \
	      for (i = 5; i <= NF; i++) if (match($$i, /^(function|graph|comm|event|memory)=/)) { split($$i, w, "="); handle = w[1] } \
	      printf "\t{\"%s\", \"%s\", \"%s\", \"%s\", \"%s\"},\n", $$2, api, $$3, $$4, handle }' $(TABLES); \
	  echo '};'; echo 'const unsigned hb_n_api_names = sizeof(hb_api_names) / sizeof(*hb_api_names);'; } > $@
