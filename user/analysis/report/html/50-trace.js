/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The timeline's data: pieces as arrays, rows with their heights, and which piece lies where. */

const ROW = {axis: 26, lane: 22, track: 16, gap: 6};

/* Flat list of begin (after the one before), length, name, count[, time filled] as arrays. */
function pieces(d) {
	const begin = [], length = [], name = [], number = [], busy = [];
	let at = 0;
	for (let i = 0; i < d.length;) {
		at += d[i];
		begin.push(at);
		length.push(d[i + 1]);
		name.push(d[i + 2]);
		number.push(d[i + 3]);
		busy.push(d[i + 3] > 1 ? d[i + 4] : d[i + 1]);
		i += d[i + 3] > 1 ? 5 : 4;
	}
	return {n: begin.length, begin, length, name, number, busy};
}

/* First piece that may reach `at` or lies behind it: they are in order of begin and hardly overlap. */
function firstAt(p, at) {
	let low = 0, high = p.n;
	while (low < high) {
		const mid = (low + high) >> 1;
		if (p.begin[mid] + p.length[mid] < at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

function laneTitle(l) {
	if (l.kind === "device")
		return `device ${l.device}, process ${l.comm} ${l.pid}`;
	if (l.kind === "process")
		return `process ${l.comm} ${l.pid}${l.why ? "" : `: steps by ${l.source}`}`;
	return `thread ${l.comm} ${l.tid}${l.tid !== l.pid ? ` of ${l.pid}` : ""}${l.dispatch ? ", dispatches work" : ""}`;
}

function trackTitle(t) {
	return t.what === "stream" ? `stream ${t.stream}` : t.depth ? `${t.what} +${t.depth}` : t.what;
}

/* Lanes with pieces and heights, from the island. */
function traceModel(data) {
	let y = ROW.axis;
	const lanes = (data.lanes || []).map((l) => {
		const lane = {...l, title: laneTitle(l), y};
		y += ROW.lane;
		lane.tracks = l.tracks.map((t) => {
			const track = {what: t.what, title: trackTitle(t), cell: t.cell, spans: t.spans, deeper: t.deeper, y, all: pieces(t.d),
				detail: (t.detail || []).map((x) => ({at: x.at, cell: x.cell, all: pieces(x.d)}))};
			y += ROW.track;
			return track;
		});
		y += ROW.gap;
		return lane;
	});
	return {lanes, height: y, wall: data.wall, names: data.names, focus: data.focus || [], scheduler: data.scheduler};
}

/* The parts of [a, b] of a track, each with the pieces to draw there: details where there are any, else the whole. */
function* trackParts(model, track, a, b) {
	let at = a;
	const inside = track.detail.map((d) => ({all: d.all, begin: model.focus[d.at].begin, end: model.focus[d.at].end}))
		.filter((d) => d.end > a && d.begin < b).sort((x, y) => x.begin - y.begin);
	for (const d of inside) {
		if (d.end <= at)
			continue;
		if (d.begin > at)
			yield {all: track.all, from: at, to: d.begin};
		yield {all: d.all, from: Math.max(at, d.begin), to: Math.min(b, d.end)};
		at = Math.min(b, d.end);
	}
	if (at < b)
		yield {all: track.all, from: at, to: b};
}

/* The piece at a moment, or the nearest within `reach`; null. */
function pieceAt(model, track, at, reach) {
	let best = null, distance = reach;
	for (const part of trackParts(model, track, at - reach, at + reach)) {
		const p = part.all;
		for (let i = Math.max(0, firstAt(p, at - reach) - 1); i < p.n && p.begin[i] <= at + reach; i++) {
			const d = at < p.begin[i] ? p.begin[i] - at : Math.max(0, at - p.begin[i] - p.length[i]);
			if (d <= distance && p.begin[i] < part.to && p.begin[i] + p.length[i] >= part.from) {
				best = {pieces: p, i};
				distance = d;
			}
		}
	}
	return best;
}

function pieceText(model, lane, track, hit) {
	const p = hit.pieces, i = hit.i, name = model.names[p.name[i]];
	const where = `${lane.title}, ${track.title}: `, when = ` at ${(p.begin[i] / 1e9).toFixed(6)} s`;
	if (p.number[i] === 1)
		return `${where}${name}, ${ns(p.length[i])}${when}`;
	const filled = p.length[i] ? Math.min(1, p.busy[i] / p.length[i]) : 1;
	return `${where}${count(p.number[i])} spans joined in ${ns(p.length[i])}${when}, together ${ns(p.busy[i])} (${share(filled)}); the longest is ${name}`;
}

/* ---- colours ---- */

const STATES = {"preempted": "preempted", "page fault or disk": "wait", "busy": "busy", "idle": "idle", "not known": "unknown",
	"idle: host": "idle", "idle: dependency": "wait", "idle: unknown": "unknown", "idle: missing": "unknown",
	"run": "run", "accelerator call": "gil", "device": "busy", "scheduler": "preempted", "step": "busy"};
/* Whose the time of a path is. */
const PARTS = {"host": "run", "compute": "busy", "communication": "gil", "memcpy": "wait", "launch delay": "preempted", "kernel delay": "unknown"};
let palette = {};

function refreshPalette() {
	palette = {};
	for (const name of ["back", "fore", "soft", "line", "panel", "run", "sleep", "preempted", "idle", "unknown", "busy", "wait", "gil", "focus", "mark"])
		palette[name] = cssColor(name);
}

function pieceColor(track, name) {
	const plain = name.replace(/ \(.*/, "");
	if (track.what === "off-CPU")
		return palette[STATES[plain] || "sleep"];
	if (track.what === "GIL")
		return palette.gil;
	if (track.what === "collections" || track.what === "exceptions")
		return palette.wait;
	if (track.what === "longest path")
		return palette[PARTS[name.replace(/: .*/s, "")] || "unknown"];
	if (["steps", "device", "idle", "critical path"].includes(track.what))
		return palette[STATES[plain] || "wait"] || palette.wait;
	return `hsl(${hue(name)} 52% 66%)`;
}
