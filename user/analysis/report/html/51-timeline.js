/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The timeline: drawn on one canvas of the size of its box, moved by keys, buttons, mouse and fingers. */

const timeline = {
	model: null, a: 0, b: 1, picked: null, lane: 0, track: 0, dirty: false, drawn: 0,

	/* ---- the view ---- */

	view(a, b) {
		const wall = this.model.wall, least = Math.min(wall, 100);
		let width = Math.min(wall, Math.max(least, b - a));
		a = Math.max(0, Math.min(wall - width, a + (b - a - width) / 2));
		[this.a, this.b] = [a, a + width];
		this.refresh();
	},
	zoom(factor, at) {
		const x = at ?? (this.a + this.b) / 2;
		this.view(x - (x - this.a) * factor, x + (this.b - x) * factor);
	},
	pan(part) {
		const d = part * (this.b - this.a);
		this.view(Math.max(0, this.a + d), Math.max(0, this.a + d) + this.b - this.a);
	},
	reset() {
		this.picked = null;
		this.view(0, this.model.wall);
	},
	/* Brings a stretch into view, with some room on both sides, and the reader to it. */
	show(begin, end) {
		const room = Math.max((end - begin) * 0.6, 20000);
		this.view(begin - room, end + room);
		this.box.focus({preventScroll: true});
		document.getElementById("timeline").scrollIntoView();
		this.say(`Showing ${ns(this.b - this.a)} from ${(this.a / 1e9).toFixed(6)} s.`);
	},
	say(text) {
		this.readout.textContent = text;
	},
	refresh() {
		if (this.dirty)
			return;
		this.dirty = true;
		requestAnimationFrame(() => {
			this.dirty = false;
			this.draw();
			drawStrips();
		});
	},

	/* ---- picking ---- */

	pick(hit, lane, track) {
		this.picked = hit && {...hit, lane, track};
		this.say(hit ? pieceText(this.model, this.model.lanes[lane], this.model.lanes[lane].tracks[track], hit) : `${this.model.lanes[lane].title}: nothing there`);
		this.refresh();
	},
	/* Another row, by keys: the piece in the middle of the view, if there is one. */
	row(step) {
		let lane = this.lane, track = this.track + step;
		while (lane >= 0 && lane < this.model.lanes.length && (track < 0 || track >= this.model.lanes[lane].tracks.length)) {
			lane += step;
			if (this.model.lanes[lane])
				track = step > 0 ? 0 : this.model.lanes[lane].tracks.length - 1;
		}
		if (!this.model.lanes[lane])
			return;
		[this.lane, this.track] = [lane, track];
		const t = this.model.lanes[lane].tracks[track], h = this.box.clientHeight;
		if (t.y < this.box.scrollTop + ROW.axis + ROW.lane || t.y + ROW.track > this.box.scrollTop + h)
			this.box.scrollTop = Math.max(0, t.y - h / 2);
		const middle = (this.a + this.b) / 2;
		this.pick(pieceAt(this.model, t, middle, (this.b - this.a) / 2), lane, track);
	},
	/* The next piece of this row, or the one before. */
	step(by) {
		const lane = this.model.lanes[this.lane], t = lane && lane.tracks[this.track];
		if (!t)
			return;
		const seen = this.picked && this.picked.lane === this.lane && this.picked.track === this.track;
		const p = seen ? this.picked.pieces : t.all, i = seen ? this.picked.i + by : Math.min(p.n - 1, firstAt(p, this.a));
		if (i < 0 || i >= p.n)
			return;
		const middle = p.begin[i] + p.length[i] / 2, half = (this.b - this.a) / 2;
		if (middle < this.a || middle > this.b)
			this.view(middle - half, middle + half);
		this.pick({pieces: p, i}, this.lane, this.track);
	},
	key(e) {
		if (e.ctrlKey || e.metaKey || e.altKey)
			return;
		const keys = {
			ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), ArrowUp: () => this.zoom(0.6), ArrowDown: () => this.zoom(1 / 0.6),
			"+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6), Home: () => this.reset(), 0: () => this.reset(),
			Escape: () => this.reset(), j: () => this.row(1), k: () => this.row(-1), n: () => this.step(1), p: () => this.step(-1),
			Enter: () => this.picked && this.show(this.picked.pieces.begin[this.picked.i], this.picked.pieces.begin[this.picked.i] + this.picked.pieces.length[this.picked.i]),
		};
		const act = keys[e.key];
		if (!act)
			return;
		e.preventDefault();
		act();
		if (!"jknp".includes(e.key) && e.key !== "Enter")
			this.say(`Showing ${ns(this.b - this.a)} of ${ns(this.model.wall)}, from ${(this.a / 1e9).toFixed(6)} s.`);
	},

	/* ---- drawing ---- */

	x(t) {
		return (t - this.a) / (this.b - this.a) * this.width;
	},
	draw() {
		const box = this.box, c = this.canvas, scale = Math.min(2, window.devicePixelRatio || 1);
		[this.width, this.height] = [box.clientWidth, box.clientHeight];
		if (!this.width || !this.height)
			return;
		if (c.width !== Math.round(this.width * scale) || c.height !== Math.round(this.height * scale)) {
			[c.width, c.height] = [Math.round(this.width * scale), Math.round(this.height * scale)];
			c.style.height = `${this.height}px`;
		}
		const g = this.g = c.getContext("2d"), top = box.scrollTop;
		g.setTransform(scale, 0, 0, scale, 0, 0);
		g.fillStyle = palette.back;
		g.fillRect(0, 0, this.width, this.height);
		g.save();
		g.translate(0, -top);
		for (const f of this.model.focus) {
			g.fillStyle = palette.mark;
			g.fillRect(this.x(f.begin), top, Math.max(1, this.x(f.end) - this.x(f.begin)), this.height);
		}
		this.model.lanes.forEach((lane, i) => {
			const end = lane.y + ROW.lane + ROW.track * lane.tracks.length;
			if (end >= top && lane.y <= top + this.height)
				this.drawLane(lane, i);
		});
		g.restore();
		this.drawAxis();
		this.drawn++;
		box.dataset.begin = String(Math.round(this.a));
		box.dataset.end = String(Math.round(this.b));
	},
	drawLane(lane, i) {
		const g = this.g;
		g.fillStyle = palette.panel;
		g.fillRect(0, lane.y, this.width, ROW.lane - 2);
		g.fillStyle = palette.fore;
		g.font = "600 12px system-ui, sans-serif";
		g.fillText(lane.title, 6, lane.y + 14, this.width - 12);
		lane.tracks.forEach((t, k) => {
			if (t.what === "off-CPU" && this.model.scheduler) {
				const from = this.x(lane.born || 0), to = this.x(lane.died || this.model.wall);
				g.fillStyle = palette.run;
				g.fillRect(from, t.y, to - from, ROW.track - 2);
			}
			for (const part of trackParts(this.model, t, this.a, this.b))
				this.drawPieces(t, part);
			g.fillStyle = palette.soft;
			g.font = "10px system-ui, sans-serif";
			const label = t.title, w = g.measureText(label).width;
			g.globalAlpha = 0.82;
			g.fillStyle = palette.back;
			g.fillRect(2, t.y + 1, w + 6, ROW.track - 4);
			g.globalAlpha = 1;
			g.fillStyle = palette.fore;
			g.fillText(label, 5, t.y + 11);
			if (this.lane === i && this.track === k && document.activeElement === this.box) {
				g.strokeStyle = palette.focus;
				g.strokeRect(0.5, t.y - 0.5, this.width - 1, ROW.track - 1);
			}
			if (this.picked && this.picked.lane === i && this.picked.track === k) {
				const p = this.picked.pieces, n = this.picked.i, x = this.x(p.begin[n]);
				g.strokeStyle = palette.fore;
				g.lineWidth = 2;
				g.strokeRect(x, t.y, Math.max(2, this.x(p.begin[n] + p.length[n]) - x), ROW.track - 2);
				g.lineWidth = 1;
			}
		});
	},
	/* Pieces narrower than a pixel are drawn together, as strong as they fill it, in the longest one's colour. */
	drawPieces(track, part) {
		const g = this.g, p = part.all, from = this.x(part.from), to = this.x(part.to), pixel = (this.b - this.a) / this.width;
		let at = -1, busy = 0, longest = 0, color = "";
		const flush = () => {
			if (at < 0)
				return;
			g.globalAlpha = Math.max(0.2, Math.min(1, busy / pixel));
			g.fillStyle = color;
			g.fillRect(at, track.y, 1, ROW.track - 2);
			g.globalAlpha = 1;
			at = -1;
		};
		for (let i = Math.max(0, firstAt(p, part.from) - 1); i < p.n && p.begin[i] < part.to; i++) {
			const x = Math.max(from, this.x(p.begin[i])), end = Math.min(to, this.x(p.begin[i] + p.length[i])), w = end - x;
			if (end < from)
				continue;
			if (w < 1) {
				if (Math.floor(x) !== at) {
					flush();
					[at, busy, longest] = [Math.floor(x), 0, -1];
				}
				busy += p.busy[i];
				if (p.length[i] > longest) {
					longest = p.length[i];
					color = pieceColor(track, this.model.names[p.name[i]]);
				}
				continue;
			}
			flush();
			this.drawPiece(track, p, i, x, w);
		}
		flush();
	},
	drawPiece(track, p, i, x, w) {
		const g = this.g, name = this.model.names[p.name[i]];
		g.fillStyle = pieceColor(track, name);
		g.globalAlpha = p.number[i] > 1 ? 0.25 + 0.75 * Math.min(1, p.busy[i] / p.length[i]) : 1;
		g.fillRect(x, track.y, Math.max(1, w - (w > 4 ? 0.5 : 0)), ROW.track - 2);
		g.globalAlpha = 1;
		if (w > 46 && track.what !== "idle")
			this.drawName(p.number[i] > 1 ? `${count(p.number[i])} x ${name}` : name, x, w, track);
	},
	drawName(name, x, w, track) {
		const g = this.g;
		g.save();
		g.beginPath();
		g.rect(x, track.y, w - 2, ROW.track);
		g.clip();
		g.font = "10px system-ui, sans-serif";
		g.fillStyle = track.what === "off-CPU" ? palette.fore : "#14181c";
		g.fillText(name, Math.max(x, 0) + (x < 70 ? 72 : 3), track.y + 11);
		g.restore();
	},
	drawAxis() {
		const g = this.g, span = this.b - this.a, raw = span / Math.max(2, this.width / 110), power = 10 ** Math.floor(Math.log10(raw));
		const tick = [1, 2, 5, 10].map((m) => m * power).find((m) => m >= raw);
		g.fillStyle = palette.panel;
		g.fillRect(0, 0, this.width, ROW.axis - 4);
		g.font = "11px system-ui, sans-serif";
		for (let t = Math.ceil(this.a / tick) * tick; t <= this.b; t += tick) {
			g.fillStyle = palette.line;
			g.fillRect(this.x(t), 0, 1, this.height);
			g.fillStyle = palette.fore;
			const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(tick))));
			g.fillText(`${(t / 1e9).toFixed(digits)} s`, this.x(t) + 3, 14);
		}
	},

	/* ---- mouse and fingers ---- */

	at(e) {
		const r = this.box.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top + this.box.scrollTop;
		return {t: this.a + x / this.width * (this.b - this.a), y};
	},
	hit(e) {
		const {t, y} = this.at(e), lane = this.model.lanes.findIndex((l) => y >= l.y && y < l.y + ROW.lane + ROW.track * l.tracks.length);
		if (lane < 0)
			return;
		const track = this.model.lanes[lane].tracks.findIndex((x) => y >= x.y && y < x.y + ROW.track);
		if (track < 0)
			return;
		[this.lane, this.track] = [lane, track];
		this.pick(pieceAt(this.model, this.model.lanes[lane].tracks[track], t, 4 / this.width * (this.b - this.a)), lane, track);
	},
	listen() {
		const box = this.box, held = new Map();
		let moved = 0;
		box.addEventListener("keydown", (e) => this.key(e));
		box.addEventListener("scroll", () => this.refresh());
		box.addEventListener("focus", () => this.refresh());
		box.addEventListener("blur", () => this.refresh());
		box.addEventListener("wheel", (e) => {
			if (!e.ctrlKey && !e.shiftKey)
				return;
			e.preventDefault();
			if (e.ctrlKey)
				this.zoom(e.deltaY < 0 ? 0.8 : 1.25, this.at(e).t);
			else
				this.pan(Math.sign(e.deltaY || e.deltaX) * 0.1);
		}, {passive: false});
		box.addEventListener("pointerdown", (e) => {
			held.set(e.pointerId, e);
			moved = 0;
		});
		box.addEventListener("pointermove", (e) => {
			const was = held.get(e.pointerId);
			if (!was)
				return;
			const dx = e.clientX - was.clientX, span = this.b - this.a, other = [...held.values()].find((x) => x.pointerId !== e.pointerId);
			moved += Math.abs(dx);
			if (other) {
				const before = Math.abs(was.clientX - other.clientX), now = Math.abs(e.clientX - other.clientX);
				if (before > 8 && now > 8)
					this.zoom(before / now, this.at(other).t);
			} else if (moved > 3) {
				if (!box.hasPointerCapture(e.pointerId))
					box.setPointerCapture(e.pointerId);
				this.view(this.a - dx / this.width * span, this.a - dx / this.width * span + span);
			}
			held.set(e.pointerId, e);
		});
		for (const end of ["pointerup", "pointercancel"])
			box.addEventListener(end, (e) => {
				if (held.delete(e.pointerId) && end === "pointerup" && moved <= 3)
					this.hit(e);
			});
		new ResizeObserver(() => this.refresh()).observe(box);
		window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
			refreshPalette();
			this.refresh();
		});
	},

	/* ---- the section ---- */

	thinned(data) {
		const parts = [];
		if (data.joined)
			parts.push(`${count(data.joined)} spans are too many to keep each: short ones that lie together are one piece that says how many it stands for and how much of it they fill (paler when little). Marked stretches have them in more detail.`);
		if (data.threads_left_out)
			parts.push(`${count(data.threads_left_out)} threads with less in them have no row.`);
		if (this.model.lanes.some((l) => l.tracks.some((t) => t.deeper)))
			parts.push("Of nested calls the outermost that last throughout, and those deeper than the rows shown, are left out.");
		return parts.join(" ");
	},
	build(data) {
		const s = section("timeline", "Timeline");
		this.model = traceModel(data);
		this.b = this.model.wall;
		if (!this.model.lanes.length) {
			s.append(el("p", {}, "This window has nothing to draw: no device records, no calls, no scheduler events."));
			return;
		}
		const button = (text, label, act) => el("button", {type: "button", "aria-label": label, title: label, click: act}, text);
		const jump = el("select", {"aria-label": "Go to", change: () => {
			const f = this.model.focus[jump.value];
			if (f)
				this.show(f.begin, f.end);
			else
				this.reset();
		}}, el("option", {value: ""}, "whole window"), this.model.focus.map((f, i) => el("option", {value: i}, f.why)));
		this.box = el("div", {id: "timeline-box", tabindex: 0, role: "application", "aria-label": "Timeline of devices, processes and threads",
			"aria-describedby": "timeline-keys"});
		this.canvas = el("canvas", {"aria-hidden": "true"});
		this.space = el("div", {id: "timeline-space"});
		this.space.style.height = `${this.model.height}px`;
		this.box.append(this.space, this.canvas);
		this.box.style.maxHeight = `${this.model.height + 2}px`;
		this.readout = el("p", {class: "readout", role: "status", "aria-live": "polite"}, "Choose a piece by a click, or by keys.");
		s.append(el("div", {class: "tools"}, button("◀", "Earlier", () => this.pan(-0.3)), button("▶", "Later", () => this.pan(0.3)),
			button("+", "Zoom in", () => this.zoom(0.5)), button("−", "Zoom out", () => this.zoom(2)), button("all", "The whole window", () => this.reset()), jump),
			this.box, this.readout,
			el("p", {id: "timeline-keys", class: "soft"}, "Keys: ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"), " move, ", el("kbd", {}, "↑"), " ", el("kbd", {}, "↓"),
				" zoom, ", el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " row, ", el("kbd", {}, "n"), " ", el("kbd", {}, "p"), " next and previous piece, ",
				el("kbd", {}, "Enter"), " zoom to it, ", el("kbd", {}, "Esc"), " all. Mouse: drag, Ctrl and wheel. Fingers: drag, pinch."));
		const legend = [["run", "on a CPU"], ["sleep", "asleep"], ["preempted", "preempted, or device idle for the host"], ["busy", "device busy, step"],
			["wait", "waits"], ["unknown", "not known"], ["gil", "GIL, accelerator call"]];
		s.append(el("ul", {class: "legend"}, legend.map(([c, text]) => {
			const spot = el("span", {"aria-hidden": "true"});
			spot.style.background = `var(--${c})`;
			return el("li", {}, spot, text);
		})));
		const thinned = this.thinned(data);
		if (thinned)
			s.append(el("p", {class: "soft", id: "thinned"}, thinned));
		this.listen();
		this.refresh();
	},
};
