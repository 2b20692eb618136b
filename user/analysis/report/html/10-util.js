/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all parts use. Text reaches the page through textContent only: names come from programs that may be hostile. */

/* el("p", {class: "x"}, "text", child): an element. Values that are functions are listeners. */
function el(tag, attributes, ...children) {
	const e = document.createElement(tag);
	for (const [key, value] of Object.entries(attributes || {})) {
		if (typeof value === "function")
			e.addEventListener(key, value);
		else if (value !== null && value !== undefined && value !== false)
			e.setAttribute(key, value === true ? "" : String(value));
	}
	for (const c of children.flat())
		if (c !== null && c !== undefined && c !== false && c !== "")
			e.append(c instanceof Node ? c : String(c));
	return e;
}

function island(id) {
	const text = document.getElementById(id).textContent;
	return text.trim() ? JSON.parse(text) : {};
}

/* ---- numbers as words ---- */

const isNumber = (x) => typeof x === "number" && Number.isFinite(x);

function ns(x) {
	if (!isNumber(x))
		return "-";
	const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
	const [size, name] = units.find(([s]) => Math.abs(x) >= s) || [1, "ns"];
	const v = x / size;
	return `${size === 1 ? Math.round(v) : v.toFixed(Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 2)} ${name}`;
}

function count(x) {
	return isNumber(x) ? Math.round(x).toString().replace(/\B(?=(\d{3})+$)/g, ",") : "-";
}

function bytes(x) {
	if (!isNumber(x))
		return "-";
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; x >= 1024 && i < 4; i++)
		x /= 1024;
	return `${i ? x.toFixed(1) : x} ${units[i]}`;
}

function share(x) {
	return isNumber(x) ? `${(100 * x).toFixed(x < 0.1 ? 2 : 1)} %` : "-";
}

/* "a" or "b to c". */
function range(low, high, format) {
	const a = format(low), b = format(high);
	return a === b ? a : `${a} to ${b}`;
}

/* A colour of its own for each name, dark enough in both schemes for black text on it. */
const hues = new Map();
function hue(name) {
	if (!hues.has(name)) {
		let h = 2166136261;
		for (let i = 0; i < name.length; i++)
			h = Math.imul(h ^ name.charCodeAt(i), 16777619);
		hues.set(name, (h >>> 0) % 360);
	}
	return hues.get(name);
}

function cssColor(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/* Definition list of [term, value]; rows without a value are left out. */
function pairs(rows) {
	const list = el("dl", {class: "pairs"});
	for (const [term, value] of rows)
		if (value !== null && value !== undefined && value !== "" && value !== "-")
			list.append(el("dt", {}, term), el("dd", {}, value));
	return list;
}

function section(id, title, ...children) {
	const e = el("section", {id, "aria-labelledby": `${id}-title`}, el("h2", {id: `${id}-title`}, title), ...children);
	document.getElementById("main").append(e);
	document.getElementById("nav").append(el("li", {}, el("a", {href: `#${id}`}, title)));
	return e;
}
