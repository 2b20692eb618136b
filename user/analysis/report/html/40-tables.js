/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables that sort by a click or key on their heads. */

const NUMBER = {ns, count, bytes, share};

/* columns: [title, format ("text", "ns", .., "show": [begin, end, of what] in the timeline), row => value];
 * `more`: rows there are beside these. */
function table(title, rows, columns, more) {
	const body = el("tbody"), heads = [];
	let order = {by: -1, down: true};

	function fill() {
		const sorted = rows.slice();
		if (order.by >= 0) {
			const cell = columns[order.by][2], value = (r) => [].concat(cell(r))[0], sign = order.down ? -1 : 1;
			sorted.sort((x, y) => {
				const a = value(x), b = value(y);
				return sign * (isNumber(a) || isNumber(b) ? (a || 0) - (b || 0) : String(a ?? "").localeCompare(String(b ?? "")));
			});
		}
		body.replaceChildren(...sorted.map((r) => el("tr", {}, columns.map(([, format, value]) => {
			const v = value(r);
			if (format === "show")
				return el("td", {}, el("button", {type: "button", class: "show", "aria-label": `Show in the timeline: ${v[2]}`,
					click: () => timeline.show(v[0], v[1])}, "show"));
			return el("td", {class: format === "text" ? "text" : "num"}, format === "text" ? v ?? "" : v ? NUMBER[format](v) : "-");
		}))));
		heads.forEach((h, i) => h.setAttribute("aria-sort", i !== order.by ? "none" : order.down ? "descending" : "ascending"));
	}

	const head = el("tr", {}, columns.map(([name, format], i) => {
		const h = el("th", {scope: "col", class: format === "text" ? null : "num"}, el("button", {type: "button", click: () => {
			order = {by: i, down: order.by === i ? !order.down : format !== "text"};
			fill();
		}}, name));
		heads.push(h);
		return h;
	}));
	fill();
	return el("details", {open: rows.length <= 20}, el("summary", {}, `${title} (${count(more || rows.length)})`),
		more && more > rows.length ? el("p", {class: "soft"}, `The first ${count(rows.length)} of ${count(more)}; \`--json\` has all.`) : null,
		el("div", {class: "wide", tabindex: 0, role: "region", "aria-label": title}, el("table", {}, el("thead", {}, head), body)));
}

const process = (r) => `${r.comm ?? "?"} ${r.pid ?? ""}`;
const QUANTILES = [["total", "ns", (r) => r.total_ns], ["p50", "ns", (r) => r.p50_ns], ["p95", "ns", (r) => r.p95_ns], ["max", "ns", (r) => r.max_ns]];
const SEEN = ["count", "count", (r) => r.count];
const PROCESS = ["process", "text", process];

const TABLES = [
	["Accelerator calls", "calls", [["call", "text", (r) => r.name], ["api", "text", (r) => r.api], ["class", "text", (r) => r.class], PROCESS, SEEN,
		["errors", "count", (r) => r.errors], ...QUANTILES, ["share", "share", (r) => r.share]]],
	["Blocking system calls", "blocking", [["call", "text", (r) => r.syscall || "none"], ["on", "text", (r) => r.chan_kind],
		["longest on", "text", (r) => r.longest_on], PROCESS, SEEN, ...QUANTILES, ["runnable", "ns", (r) => r.runnable_ns]]],
	["Time off the CPU", "offcpu", [["reason", "text", (r) => r.reason], PROCESS, SEEN, ...QUANTILES, ["runnable", "ns", (r) => r.runnable_ns],
		["woken mostly by", "text", (r) => { const w = (r.wakers || [])[0]; return w ? (w.thread ? `${w.thread.comm} ${w.thread.tid}` : w.context) : ""; }]]],
	["Wake-ups between processes", "wakeups", [["from", "text", (r) => process(r.from)], ["to", "text", (r) => process(r.to)],
		["on", "text", (r) => r.chan_kind], SEEN, ["slept", "ns", (r) => r.slept_ns]]],
	["Locks", "locks", [["futex", "text", (r) => r.futex], PROCESS, SEEN, ["total", "ns", (r) => r.total_ns], ["max", "ns", (r) => r.max_ns]]],
	["Waits for the GIL", "gil_waits", [["thread", "text", (r) => `${r.comm} ${r.tid}`], PROCESS, SEEN, ...QUANTILES]],
	["Holders of the GIL", "gil_holders", [["thread", "text", (r) => r.tid ? String(r.tid) : "unknown"], PROCESS, ["waits of others", "count", (r) => r.waits],
		["waited", "ns", (r) => r.waited_ns], ["longest", "ns", (r) => r.longest_ns], ["where", "text", (r) => (r.frames || []).slice(-1)[0]]]],
	["Garbage collections", "gc", [PROCESS, ["generation", "text", (r) => r.generation === undefined ? "not told" : String(r.generation)], SEEN, ...QUANTILES]],
	["Exceptions", "exceptions", [["exception", "text", (r) => r.exception], ["function", "text", (r) => r.function], PROCESS, SEEN]],
	["Python calls", "python_calls", [["function", "text", (r) => r.qualname || "unknown"], ["module", "text", (r) => r.module], PROCESS, SEEN, ...QUANTILES]],
	["Functions on the CPU", "functions", [["function", "text", (r) => r.function], ["module", "text", (r) => r.module || r.file],
		["self", "ns", (r) => r.self_ns], ["with all below", "ns", (r) => r.total_ns], ["samples", "count", (r) => r.samples]]],
	["System calls", "syscalls", [["call", "text", (r) => r.syscall], PROCESS, SEEN, ["errors", "count", (r) => r.errors], ...QUANTILES]],
	["Processes", "processes", [PROCESS, ["program", "text", (r) => r.exe], ["threads", "count", (r) => r.threads], ["operations", "count", (r) => r.operations],
		["in calls", "ns", (r) => r.call_ns], ["CPU", "ns", (r) => r.cpu_ns], ["off-CPU", "ns", (r) => r.offcpu_ns], ["runnable", "ns", (r) => r.runnable_ns]]],
	["Threads", "threads", [["thread", "text", (r) => `${r.comm} ${r.tid}`], ["pid", "text", (r) => String(r.pid)], ["operations", "count", (r) => r.operations],
		["in calls", "ns", (r) => r.call_ns], ["CPU", "ns", (r) => r.cpu_ns], ["off-CPU", "ns", (r) => r.offcpu_ns], ["runnable", "ns", (r) => r.runnable_ns]]],
];

function tables(a, t) {
	const s = section("tables", "Tables");
	if ((a.kernels || []).length)
		s.append(table("Kernels", a.kernels, [["kernel", "text", (r) => r.name], ["class", "text", (r) => r.class], SEEN, ...QUANTILES,
			["share", "share", (r) => r.share]], a.kernels_rows));
	if ((a.operators || []).length)
		s.append(table("Operators", a.operators, [["operator", "text", (r) => r.name], ["file", "text", (r) => r.file], ["pid", "text", (r) => String(r.pid)],
			SEEN, ...QUANTILES, ["launches", "count", (r) => r.launches], ["waited", "ns", (r) => r.waited_ns],
			["device", "ns", (r) => r.device && r.device.work_ns]], a.operators_rows));
	for (const d of a.devices || [])
		if ((d.copies || []).length)
			s.append(table(`Copies of device ${d.id}, process ${process(d)}`, d.copies, [["direction", "text", (r) => r.direction], ["from", "text", (r) => r.from],
				["to", "text", (r) => r.to], SEEN, ["bytes", "bytes", (r) => r.bytes], ...QUANTILES, ["call blocked", "ns", (r) => r.blocked_ns]]));
	for (const [title, key, columns] of TABLES)
		if ((t[key] || []).length)
			s.append(table(title, t[key], columns, t[`${key}_rows`]));
}

/* ---- devices, receipt, loss ---- */

function devices(a) {
	const rows = a.devices || [], states = a.device_states || [];
	if (!rows.length && !states.length)
		return;
	const s = section("devices", "Devices");
	if (states.length)
		s.append(table("What is known of them over the window", states, [["of process", "text", (r) => String(r.pid)],
			["from", "text", (r) => r.recorded ? "device records" : "calls"], ["busy", "ns", (r) => r.busy_ns], ["idle", "ns", (r) => r.idle_ns],
			["not known", "ns", (r) => r.unknown_ns]]));
	if (rows.length)
		s.append(table("Time of each device", rows, [["device", "text", (r) => String(r.id)], PROCESS, ["span", "ns", (r) => r.span_ns], ["busy", "ns", (r) => r.busy_ns],
		["compute", "ns", (r) => r.compute_ns], ["communication", "ns", (r) => r.comm_ns], ["of it exposed", "ns", (r) => r.exposed_comm_ns],
		["copies", "ns", (r) => r.memcpy_ns], ["of them exposed", "ns", (r) => r.exposed_memcpy_ns], ["idle", "ns", (r) => r.idle_ns],
		["not known", "ns", (r) => r.not_known_ns]]));
	if ((a.roofline || []).length)
		s.append(table("Speed of light: work whose sizes are known", a.roofline, [["what", "text", (r) => r.name], ["shape", "text", (r) => r.shape],
			["kernel", "text", (r) => r.kernel], ["bound by", "text", (r) => r.bound || "not known"], SEEN, ["total", "ns", (r) => r.total_ns],
			["p50", "ns", (r) => r.p50_ns], ["at least", "ns", (r) => r.light_ns], ["of light", "share", (r) => r.of_light]], a.roofline_rows));
	if ((a.roofline_no_model || []).length)
		s.append(table("Kernels without a model", a.roofline_no_model, [["kernel", "text", (r) => r.kernel], ["operator", "text", (r) => r.operator],
			["reason", "text", (r) => r.reason], SEEN, ["total", "ns", (r) => r.total_ns]], a.roofline_no_model_rows));
}

function receipt(a) {
	const r = a.receipt || {}, l = a.loss || {}, s = section("receipt", "Receipt and loss");
	s.append(el("h3", {}, "What recording cost"), pairs([["probes, in the targets", ns(r.probes_cost_ns)], ["hooks, on the whole machine", ns(r.hooks_cost_ns)],
		["the tool's own CPU", ns(r.self_cpu_ns)], ["of it inside the window", ns(r.self_cpu_window_ns)], ["its memory", bytes(r.self_rss)]]));
	if ((r.hooks || []).length)
		s.append(table("Hooks and their prices", r.hooks, [["hook", "text", (x) => x.hook], ["where", "text", (x) => x.where],
			["hits", "count", (x) => x.hits], ["price", "ns", (x) => x.price_ns], ["cost", "ns", (x) => x.cost_ns]], r.hooks_rows));
	s.append(el("h3", {}, "What was lost"));
	const causes = Object.entries(l).filter(([k, v]) => isNumber(v) && v > 0 && k !== "total");
	if (l.known === false)
		s.append(el("p", {}, "How much was lost is not known: the window was not finished."));
	s.append(causes.length ? pairs(causes.map(([k, v]) => [k, count(v)])) : el("p", {}, l.known === false ? "Nothing that was counted." : "Nothing."));
	const notes = a.notes || [];
	if (notes.length)
		s.append(el("h3", {}, "Notes"), el("ul", {}, notes.map((n) => el("li", {}, typeof n === "string" ? n : n.text || JSON.stringify(n)))));
}
