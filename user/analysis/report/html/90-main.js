/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

const analysis = island("analysis"), trace = island("timeline");
refreshPalette();
facts(analysis);
banners(analysis);
verdict(analysis);
findings(analysis);
steps(analysis, trace);
criticalPath(analysis, trace);
timeline.build(trace);
flames(trace);
devices(analysis);
tables(analysis, island("tables"));
receipt(analysis);
document.documentElement.dataset.ready = "yes";
