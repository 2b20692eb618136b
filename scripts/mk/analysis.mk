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

# docs/roofline.md likewise, from the tables of formulas and operators.
.PHONY: docs-roofline
docs-roofline: $(B)/tests/unit/test_roof_formula
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

# The page of `analyze --html`: styles and scripts are files, built in, each with the hash that the page's policy names.
HTML_DIR := user/analysis/report/html
HTML_CSS := $(sort $(wildcard $(HTML_DIR)/*.css))
HTML_JS  := $(sort $(wildcard $(HTML_DIR)/*.js))
$(B)/gen/page.css: $(HTML_CSS)
	@mkdir -p $(@D)
	@cat $^ > $@
$(B)/gen/page.js: $(HTML_JS)
	@mkdir -p $(@D)
	@{ echo '"use strict"; (() => {'; cat $^; echo '})();'; } > $@
$(B)/gen/html.c: $(HTML_DIR)/page.html $(B)/gen/page.css $(B)/gen/page.js scripts/mk/analysis.mk
	@{ echo '/* the page of analyze --html, embedded */'; echo '#include "analysis/report/html/embedded.h"'; \
	  blob() { \
	    echo "__asm__(\".section .rodata\\nhb_html_$$1_0:\\n.incbin \\\"$$2\\\"\\nhb_html_$$1_1:\\n.byte 0\\n.text\\n\");"; \
	    echo "extern const char hb_html_$$1_0[], hb_html_$$1_1[];"; \
	    echo "const struct hb_blob hb_html_$$1 = {hb_html_$$1_0, hb_html_$$1_1, \"$$(sha256sum "$$2" | cut -c1-64 | tr a-f A-F | basenc -d --base16 | base64)\"};"; \
	  }; \
	  blob page $(HTML_DIR)/page.html; blob style $(B)/gen/page.css; blob script $(B)/gen/page.js; } > $@
# What devices can do at best (analysis/model/peaks.h), made a part of the program.
$(B)/gen/peaks.c: user/analysis/model/peaks.tbl scripts/mk/analysis.mk
	@mkdir -p $(@D)
	@{ echo '#include "analysis/model/peaks.h"'; \
	  echo "__asm__(\".section .rodata\\nhb_peaks_0:\\n.incbin \\\"$<\\\"\\nhb_peaks_1:\\n.byte 0\\n.text\\n\");"; \
	  echo 'extern const char hb_peaks_0[], hb_peaks_1[];'; \
	  echo 'const struct hb_peaks_text hb_peaks_text = {hb_peaks_0, hb_peaks_1};'; } > $@
