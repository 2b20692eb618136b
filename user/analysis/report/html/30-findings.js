/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Head, verdict and findings: the same document as `analyze --json`. */

function banners(a) {
	const w = a.window || {}, box = document.getElementById("banners"), say = (text) => box.append(el("p", {class: "banner", role: "note"}, text));
	if (w.simulated)
		say(`This window is of a ${w.device || "simulated device"}: times on the device are made up.`);
	if (w.complete === false)
		say("This window was not finished: what came last is missing.");
	if (w.damage)
		say(w.damage);
	if (w.read_error)
		say(`The window could not be read to its end: ${w.read_error}`);
	const lost = a.loss && a.loss.total;
	if (lost)
		say(`Loss: ${count(lost)} records or parts are missing; see "Receipt and loss".`);
}

function facts(a) {
	const w = a.window || {}, m = w.meta || {};
	const parts = [m.host, m.kernel && `kernel ${m.kernel}`, m.profile && `profile ${m.profile}`, isNumber(w.wall_ns) && ns(w.wall_ns),
		isNumber(w.records) && `${count(w.records)} records`];
	document.getElementById("facts").textContent = parts.filter(Boolean).join(" · ");
}

function verdict(a) {
	const v = a.verdict || {};
	section("verdict", "Verdict", el("p", {class: "verdict"}, el("strong", {}, v.kind ? `${v.kind}: ` : ""), v.text || "No verdict."),
		v.caution ? el("p", {class: "cost"}, el("strong", {}, "Caution: "), v.caution) : null);
}

function exposedText(f) {
	const low = f.exposed_min_ns ?? f.exposed_ns, high = f.exposed_max_ns ?? f.exposed_ns;
	const likely = isNumber(f.exposed_likely_ns) ? `, likely ${ns(f.exposed_likely_ns)}` : "";
	return high > 0 ? range(low, high, ns) + likely : "";
}

/* "function (file.py:12)", "function [module]", as the text report has them. */
function frameText(f) {
	const base = (path) => path.split("/").pop();
	return f.file ? `${f.f} (${base(f.file)}${f.line ? `:${f.line}` : ""})` : f.module ? `${f.f} [${base(f.module)}]` : f.f;
}

function stackBlock(title, frames) {
	if (!Array.isArray(frames) || !frames.length)
		return null;
	return el("details", {}, el("summary", {}, `${title} (${frames.length} frames)`),
		el("pre", {tabindex: 0, "aria-label": title}, frames.map(frameText).join("\n")));
}

function taskText(t) {
	return `${t.comm} ${t.tid}`;
}

/* A number of a rule as its unit is. */
function unitText(x, unit) {
	const texts = {ns, bytes, share, count, ratio: (v) => `${+v.toFixed(3)} x`, rate: (v) => `${count(v)}/s`};
	return isNumber(x) && texts[unit] ? texts[unit](x) : String(x ?? "");
}

function conditionText(m) {
	return `${m.meaning || m.condition}: ${unitText(m.value, m.unit)} (asked for: ${m.at_most ? "at most" : "at least"} ${unitText(m.threshold, m.unit)})`;
}

function instanceItem(i) {
	const exposed = exposedText(i), at = `${(i.ts / 1e9).toFixed(6)} s`;
	return el("li", {}, `at ${at}, ${ns(i.dur)}`, i.thread && `, thread ${taskText(i.thread)}`, i.waker && `, ended by ${taskText(i.waker)}`,
		exposed && `, exposed ${exposed}`, " ",
		el("button", {class: "show", type: "button", click: () => timeline.show(i.ts, i.ts + i.dur),
			"aria-label": `Show in the timeline: ${ns(i.dur)} at ${at}`}, "show"),
		stackBlock("Stack", i.stack), stackBlock("Stack of who ended it", i.waker_stack));
}

function costText(f) {
	return [exposedText(f) && `device idle exposed: ${exposedText(f)}`, f.share > 0 && `${share(f.share)} of the window`,
		f.delay_ns && `delay added: ${ns(f.delay_ns)}`, f.device_ns && `device time: ${ns(f.device_ns)}`].filter(Boolean).join(" · ");
}

function findingCard(f, nth, titles) {
	return el("article", {class: f.effect_of ? "card effect" : "card"},
		el("h3", {}, `${nth}. ${f.title} (${f.id})`),
		el("p", {class: "cost"}, costText(f)),
		f.effect_of && el("p", {}, `An effect of ${f.effect_of}${titles.has(f.effect_of) ? ` (${titles.get(f.effect_of)})` : ""}.`),
		el("p", {}, f.text),
		pairs([["where", [f.layer, f.process && `process ${f.process.comm} ${f.process.pid}`, f.device && `device ${f.device.id}`].filter(Boolean).join(", ")],
			["seen", f.count ? `${count(f.count)} times; p50 ${ns(f.p50_ns)}, p95 ${ns(f.p95_ns)}, max ${ns(f.max_ns)}` : ""],
			["who waited for whom", f.chain],
			["in the end for", f.chain_end && `${taskText(f.chain_end)}${f.chain_end_by ? ` (${f.chain_end_by})` : ""}`],
			["worth", f.gain_bound_ns ? `at most ${ns(f.gain_bound_ns)} of this window` : ""],
			["confidence", [f.confidence, f.why].filter(Boolean).join(": ")]]),
		stackBlock("Stack at the end of that chain", f.chain_end_stack),
		f.fix && el("p", {class: "fix"}, el("strong", {}, "Fix: "), f.fix),
		f.settle && f.confidence !== "high" && el("p", {}, el("strong", {}, "To settle it: "), f.settle),
		(f.measures || []).length ? el("details", {}, el("summary", {}, "Evidence: the rule's numbers"),
			el("ul", {}, f.measures.map((m) => el("li", {}, conditionText(m))), f.traps && el("li", {}, `What looks alike: ${f.traps}`))) : null,
		(f.instances || []).length ? el("details", {open: nth === 1}, el("summary", {}, "Worst instances"),
			el("ul", {}, f.instances.map(instanceItem))) : null,
		f.reference && el("p", {class: "soft"}, `Seen before: ${f.reference}`));
}

function plainList(title, rows, text) {
	return rows && rows.length ? el("details", {}, el("summary", {}, `${title} (${rows.length})`), el("ul", {}, rows.map((r) => el("li", {}, text(r))))) : null;
}

function ruledOutText(r) {
	return `${r.id} ${r.title}: ${r.text}${r.condition ? ` (${conditionText(r)})` : ""}`;
}

function notCheckedText(r) {
	return `${r.id} ${r.title}: ${r.text}`;
}

function findings(a) {
	const all = a.findings || [], s = section("findings", "Findings");
	const titles = new Map(all.map((f) => [f.id, f.title]));
	if (!all.length)
		s.append(el("p", {}, "Nothing was found above the gate."));
	all.forEach((f, i) => s.append(findingCard(f, i + 1, titles)));
	for (const part of [plainList("Looked at, and not so", a.ruled_out, ruledOutText), plainList("Not looked at", a.not_checked, notCheckedText)])
		if (part)
			s.append(part);
}
