/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flame graphs, root at the top: a tree that is walked by arrow keys and zoomed by Enter or a click. */

const FLAME_ROW = 19, FLAME_LEAST = 0.0012;

function flameTree(d, names) {
	const nodes = [], roots = [];
	for (let i = 0; i < d.length; i += 3) {
		const n = {id: i / 3, name: names[d[i + 1]], value: d[i + 2], up: null, down: []};
		nodes.push(n);
		if (d[i] === n.id) {
			roots.push(n);
		} else {
			n.up = nodes[d[i]];
			n.up.down.push(n);
		}
	}
	for (const n of nodes)
		n.down.sort((x, y) => y.value - x.value);
	return roots.sort((x, y) => y.value - x.value);
}

class Flame {
	constructor(data, names) {
		this.data = data;
		this.top = {id: -1, name: "all", value: data.total, up: null, down: flameTree(data.d, names)};
		for (const n of this.top.down)
			n.up = this.top;
		this.root = this.top;
		this.box = el("div", {class: "flame", role: "tree", "aria-label": `Flame graph: ${data.what}`});
		this.readout = el("p", {class: "readout", role: "status", "aria-live": "polite"}, "");
		this.word = "";
		this.box.addEventListener("keydown", (e) => this.key(e));
		this.box.addEventListener("click", (e) => this.open(e.target.node));
		this.box.addEventListener("focusin", (e) => e.target.node && this.say(e.target.node));
		this.box.addEventListener("pointerover", (e) => e.target.node && this.say(e.target.node));
		new ResizeObserver(() => this.draw()).observe(this.box);
	}
	format(v) {
		return this.data.unit === "ns" ? ns(v) : count(v);
	}
	text(n) {
		return `${n.name}: ${this.format(n.value)}, ${share(n.value / this.data.total)}`;
	}
	say(n) {
		this.readout.textContent = this.text(n);
	}
	open(n) {
		if (!n)
			return;
		this.root = n === this.root && n.up ? n.up : n;
		this.draw();
		this.focus(n);
	}
	focus(n) {
		const e = [...this.box.children].find((x) => x.node === n) || this.box.firstChild;
		if (e) {
			for (const x of this.box.children)
				x.tabIndex = x === e ? 0 : -1;
			e.focus({preventScroll: false});
		}
	}
	key(e) {
		const n = e.target.node;
		if (!n || e.ctrlKey || e.metaKey || e.altKey)
			return;
		const beside = n.up ? n.up.down : [n], i = beside.indexOf(n);
		const to = {ArrowDown: n.down[0], ArrowUp: n === this.root ? null : n.up, ArrowRight: beside[i + 1], ArrowLeft: beside[i - 1]}[e.key];
		if (e.key === "Enter" || e.key === " ")
			this.open(n);
		else if (e.key === "Escape")
			this.open(this.root === this.top ? this.top : (this.root = this.top));
		else if (to)
			this.focus(to);
		else
			return;
		e.preventDefault();
	}
	/* Nodes too narrow to be seen are not made. */
	draw() {
		const width = this.box.clientWidth, made = [];
		let deepest = 0;
		if (!width || width === this.width && this.root === this.drawnRoot && this.word === this.drawnWord)
			return;
		[this.width, this.drawnRoot, this.drawnWord] = [width, this.root, this.word];
		const place = (n, x, w, depth) => {
			made.push([n, x, w, depth]);
			deepest = Math.max(deepest, depth);
			let at = x;
			for (const d of n.down) {
				const part = d.value / n.value * w;
				if (part >= Math.max(FLAME_LEAST * width, 1))
					place(d, at, part, depth + 1);
				at += part;
			}
		};
		place(this.root, 0, width, 0);
		this.box.style.height = `${(deepest + 1) * FLAME_ROW + 2}px`;
		this.box.replaceChildren(...made.map(([n, x, w, depth], i) => {
			const e = el("div", {role: "treeitem", tabindex: i ? -1 : 0, "aria-level": depth + 1, "aria-label": this.text(n)}, n.name);
			e.node = n;
			e.style.left = `${x}px`;
			e.style.top = `${depth * FLAME_ROW}px`;
			e.style.width = `${Math.max(1, w)}px`;
			e.style.background = n === this.top ? "#b9c2cc" : `hsl(${n.name.includes(".py") ? 205 : n.name.endsWith("_[k]") ? 25 : 45} ${45 + hue(n.name) % 30}% ${64 + hue(n.name) % 14}%)`;
			if (this.word && n.name.toLowerCase().includes(this.word))
				e.classList.add("found");
			return e;
		}));
	}
	/* Share of what has the word in it, each nanosecond once. */
	search(word) {
		this.word = word.trim().toLowerCase();
		const sum = (n) => n.name.toLowerCase().includes(this.word) ? n.value : n.down.reduce((s, d) => s + sum(d), 0);
		this.draw();
		if (this.word)
			this.readout.textContent = `"${word}": ${this.format(sum(this.root))}, ${share(sum(this.root) / this.data.total)}`;
	}
}

function flames(data) {
	const s = section("flames", "Flame graphs"), all = data.flames || [];
	if (!all.length) {
		s.append(el("p", {}, "No stacks in this window."));
		return;
	}
	const made = all.map((f) => new Flame(f, data.names)), place = el("div");
	const choose = el("select", {"aria-label": "Which flame graph", change: () => put(choose.value)}, all.map((f, i) => el("option", {value: i}, f.what)));
	const find = el("input", {type: "search", placeholder: "find a function", "aria-label": "Find a function in the flame graph",
		input: () => made[choose.value].search(find.value)});
	const note = el("p", {class: "soft"});
	function put(i) {
		const f = all[i];
		place.replaceChildren(made[i].box, made[i].readout);
		made[i].word = find.value.trim().toLowerCase();
		note.textContent = `${count(f.stacks)} different stacks, together ${made[i].format(f.total)}.` +
			(f.left_out ? ` ${count(f.left_out)} of the smallest frames are left out.` : "") + " Keys: arrows move, Enter zooms, Esc shows all.";
		made[i].draw();
	}
	s.append(el("div", {class: "tools"}, choose, find), place, note);
	put(0);
}
