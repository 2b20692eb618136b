/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The critical path that was asked for (--critical-path): whose its time is, a strip of it, and its links. */

function drawPath({canvas, path, names, begin, end}) {
	const room = cleared(canvas);
	if (!room)
		return;
	const {g, w, h} = room, x = (t) => (t - begin) / Math.max(1, end - begin) * w;
	g.fillStyle = palette.mark;
	g.fillRect(x(timeline.a), 0, Math.max(2, x(timeline.b) - x(timeline.a)), h);
	for (let i = 0; i < path.n; i++) {
		g.fillStyle = pieceColor({what: "longest path"}, names[path.name[i]]);
		g.globalAlpha = path.number[i] > 1 && path.length[i] ? 0.25 + 0.75 * Math.min(1, path.busy[i] / path.length[i]) : 1;
		g.fillRect(x(path.begin[i]), 4, Math.max(1, x(path.begin[i] + path.length[i]) - x(path.begin[i])), h - 8);
	}
	g.globalAlpha = 1;
}

const PART_KEYS = [["host", "host_ns"], ["compute", "compute_ns"], ["communication", "comm_ns"], ["memcpy", "memcpy_ns"],
	["launch delay", "launch_ns"], ["kernel delay", "kernel_delay_ns"]];

/* Its parts with their colours, which the strip has too. */
function pathParts(c) {
	return el("ul", {class: "legend"}, PART_KEYS.filter(([, key]) => c[key] > 0).map(([name, key]) => {
		const spot = el("span", {"aria-hidden": "true"});
		spot.style.background = `var(--${PARTS[name]})`;
		return el("li", {}, spot, `${name} ${ns(c[key])} (${share(c[key] / c.length_ns)})`);
	}));
}

function pathStrip(c, data, whole) {
	const track = (data.lanes || []).flatMap((l) => l.tracks).find((t) => t.what === "longest path");
	if (!track)
		return null;
	/* Work that was launched in the stretch may end after it. */
	const path = pieces(track.d), at = data.critical, last = path.n - 1;
	const end = Math.max(at.end, path.begin[last] + path.length[last]), span = end - at.begin;
	const canvas = el("canvas", {class: "strip path", role: "img", "aria-label": `The path over its ${ns(span)}. ${whole}`, click: (e) => {
		const t = at.begin + e.offsetX / canvas.clientWidth * span, hit = Math.min(path.n - 1, firstAt(path, t));
		timeline.show(path.begin[hit], path.begin[hit] + path.length[hit]);
	}});
	strips.push({draw: drawPath, canvas, path, names: data.names, begin: at.begin, end});
	return canvas;
}

/* "step 3", "aten::mm 0", "the window". */
function pathOf(c) {
	return c.of ? `${c.of}, number ${c.instance}` : "the window";
}

function criticalPath(a, data) {
	const c = a.critical_path;
	if (!c)
		return;
	const s = section("critical-path", "Critical path"), at = data.critical || {begin: 0, end: 0};
	const whole = `${ns(c.length_ns)} from the begin of ${pathOf(c)}, process ${c.pid}, which itself lasts ${ns(c.end_ns - c.begin_ns)}`;
	s.append(el("p", {}, `The longest chain of operators, calls and device work that had to follow each other: ${whole}. `
		+ "Time of a thread in none of them is not in it. The timeline has it as the row \u201clongest path\u201d."), pathParts(c));
	const strip = pathStrip(c, data, whole);
	if (strip)
		s.append(strip);
	s.append(el("div", {class: "tools"}, el("button", {type: "button", click: () => timeline.show(at.begin, at.end)}, "Show it in the timeline")));
	if (c.graph && !c.graph.recorded_waits)
		s.append(el("p", {class: "soft"}, "Waits for the device were not recorded: the path cannot go from a device back to the host."));
	s.append(table("What its time is spent in", c.by_name || [], [["what", "text", (r) => r.name], ["part", "text", (r) => r.part],
		["times", "count", (r) => r.count], ["time", "ns", (r) => r.total_ns], ["share", "share", (r) => c.length_ns ? r.total_ns / c.length_ns : 0]], c.by_name_rows));
	const kept = c.path || [], links = kept.filter((n) => n.ns > 0);
	s.append(table("Its links, in order", links, [["what", "text", (r) => r.event], ["part", "text", (r) => r.part], ["takes", "ns", (r) => r.ns],
		["thread or device", "text", (r) => isNumber(r.device) ? `device ${r.device}` : `thread ${r.tid}`],
		["ends", "ns", (r) => r.ts_ns - c.begin_ns],
		["timeline", "show", (r) => [at.begin + r.ts_ns - c.begin_ns - r.ns, at.begin + r.ts_ns - c.begin_ns, `${r.event}, ${ns(r.ns)}`]]],
		c.path_rows > kept.length ? c.path_rows : null));
}
