/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The strip of steps: one bar for each, as high as it is long; what the timeline shows is marked. */

const strips = [];

function drawStrips() {
	for (const s of strips)
		s.draw(s);
}

/* A canvas made as large as its box, and empty; null where it has none. */
function cleared(canvas) {
	const scale = Math.min(2, window.devicePixelRatio || 1), w = canvas.clientWidth, h = canvas.clientHeight;
	if (!w)
		return null;
	if (canvas.width !== Math.round(w * scale)) {
		canvas.width = Math.round(w * scale);
		canvas.height = Math.round(h * scale);
	}
	const g = canvas.getContext("2d");
	g.setTransform(scale, 0, 0, scale, 0, 0);
	g.fillStyle = palette.back;
	g.fillRect(0, 0, w, h);
	return {g, w, h};
}

function drawStrip({canvas, steps, wall, top}) {
	const room = cleared(canvas);
	if (!room)
		return;
	const {g, w, h} = room;
	g.fillStyle = palette.mark;
	g.fillRect(timeline.a / wall * w, 0, Math.max(2, (timeline.b - timeline.a) / wall * w), h);
	g.fillStyle = palette.busy;
	for (let i = 0; i < steps.n; i++) {
		const mean = steps.length[i] / Math.max(1, steps.number[i] > 1 ? steps.number[i] : 1);
		const high = Math.max(2, Math.min(1, mean / top) * (h - 4));
		g.fillRect(steps.begin[i] / wall * w, h - high, Math.max(1, steps.length[i] / wall * w - 0.5), high);
	}
}

/* What a step goes from and to, by what marks it. */
const BORDERS = {"step function": "each a call of the engine's step function", "annotation": "each a span that the trace marks as a step",
	"read-back": "each from one copy of its results to the host to the next", "synchronisation": "each from one wait for the device to the next",
	"graph launch": "each from one launch of its graph to the next"};

/* Lengths of steps in words: from the model itself where the analysis has them. */
function stepText(a, pid) {
	const found = [].concat(a.steps || []).find((s) => s.pid === pid);
	const none = found && found.no_load_ns > 0 ? `; not in them: ${ns(found.no_load_ns)} in which all that is traced waited for data from outside (no load, or the answer of a process that is not traced)` : "";
	return found && isNumber(found.p50_ns) ? `p50 ${ns(found.p50_ns)}, p95 ${ns(found.p95_ns)}, max ${ns(found.max_ns)}${none}` : "";
}

function steps(a, data) {
	const lanes = (data.lanes || []).filter((l) => l.kind === "process");
	const withSteps = lanes.filter((l) => l.tracks.some((t) => t.what === "steps"));
	const s = section("steps", "Steps");
	if (!withSteps.length)
		s.append(el("p", {}, lanes[0] && lanes[0].why ? `No steps: ${lanes[0].why}` : "No steps: this window has none that can be told apart."));
	for (const lane of withSteps) {
		const track = lane.tracks.find((t) => t.what === "steps"), p = pieces(track.d);
		const lengths = p.length.map((x, i) => x / p.number[i]).sort((x, y) => x - y);
		const text = `${count(track.spans)} steps of process ${lane.comm} ${lane.pid}, ${BORDERS[lane.source] || `by ${lane.source}`}. ${stepText(a, lane.pid)}`;
		const canvas = el("canvas", {class: "strip", role: "img", "aria-label": text, click: (e) => {
			const at = e.offsetX / canvas.clientWidth * data.wall, hit = Math.min(p.n - 1, firstAt(p, at));
			timeline.show(p.begin[hit], p.begin[hit] + p.length[hit]);
		}});
		const extremes = [["Longest step", data.focus.find((f) => f.why.startsWith("longest step"))], ["Typical step", data.focus.find((f) => f.why.startsWith("typical step"))]];
		s.append(el("p", {}, text), canvas, el("div", {class: "tools"}, extremes.filter(([, f]) => f && lane === withSteps[0]).map(([name, f]) =>
			el("button", {type: "button", click: () => timeline.show(f.begin, f.end)}, name))));
		strips.push({draw: drawStrip, canvas, steps: p, wall: data.wall, top: lengths[Math.floor(lengths.length * 0.99)] * 1.1 || 1});
	}
}
