# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`analyze --html`: the page as a file, and as a person sees it in Debian's Chromium, by eye and by keyboard."""
import html.parser
import json
import os
import re

import pytest

from lib import browser as browsers
from lib import paths
from lib.tool import FAILED, OK, USAGE

pytestmark = pytest.mark.beside

EVIL = "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\"><!--"
STEPS, STEP_US = 120, 10000


def trace(name="python3 worker", steps=STEPS):
    """A Chrome trace of an engine whose device idles most of each step, while a small copy is waited for."""
    rows = [{"ph": "M", "name": "process_name", "pid": 7, "tid": 7, "args": {"name": name}},
            {"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": name}}]

    def call(ts, dur, what, number):
        rows.append({"ph": "X", "cat": "cuda_runtime", "name": what, "pid": 7, "tid": 7, "ts": ts, "dur": dur,
                     "args": {"correlation": number}})

    for i in range(steps):
        at = 1000 + i * STEP_US
        rows.append({"ph": "X", "cat": "python_function", "name": "/srv/engine.py(142): one_step", "pid": 7, "tid": 7, "ts": at, "dur": 8500,
                     "args": {"Python id": i + 1}})
        rows.append({"ph": "X", "cat": "cpu_op", "name": f"aten::{name}", "pid": 7, "tid": 7, "ts": at, "dur": 8000,
                     "args": {"External id": i}})
        call(at + 10, 20, "cudaLaunchKernel", 10 * i + 1)
        rows.append({"ph": "X", "cat": "kernel", "name": f"gemm_{name}", "pid": 0, "tid": 7, "ts": at + 40, "dur": 1500,
                     "args": {"correlation": 10 * i + 1, "device": 0, "stream": 7, "context": 1}})
        call(at + 40, 1600, "cudaMemcpyAsync", 10 * i + 2)
        rows.append({"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "pid": 0, "tid": 7, "ts": at + 1550, "dur": 50,
                     "args": {"correlation": 10 * i + 2, "device": 0, "stream": 7, "context": 1, "bytes": 4}})
        call(at + 1650, 10, "cudaStreamSynchronize", 10 * i + 3)
    return {"traceEvents": rows}


class Page(html.parser.HTMLParser):
    """Elements that are open or were, and the text of scripts by id."""

    VOID = {"meta", "link", "img", "br", "input", "hr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.scripts, self.links, self._script = [], [], {}, [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        values = dict(attrs)
        self.links += [v for k, v in attrs if k in ("src", "href", "action", "srcset", "data")]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self._script = values.get("id", "script")
            self.scripts[self._script] = ""

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes nothing; open: {self.open}"
        self.open.pop()
        self._script = None

    def handle_data(self, data):
        if self._script:
            self.scripts[self._script] += data


@pytest.fixture
def page_of(tool):
    """A trace as a window and its page: page_of(trace()) -> (page's path, analysis as JSON)."""

    def make(content, name="w"):
        source, window, page = (os.path.join(tool.folder, f"{name}.{end}") for end in ("json", "hbw", "html"))
        with open(source, "w", encoding="utf-8") as f:
            json.dump(content, f)
        tool.run("import", source, "-o", window, code=OK)
        tool.run("analyze", window, "--html", page, code=OK)
        return page, json.loads(tool.run("analyze", window, "--json", code=OK).out)

    return make


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    try:
        b = browsers.Browser(tmp_path_factory.mktemp("browser"))
    except browsers.Missing as e:
        pytest.skip(str(e))
    yield b
    b.close()


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def check_clean(b):
    """No error in the console, nothing that the policy stopped, no request to anywhere, no object or missing value as text."""
    assert b.complaints() == []
    assert b.requests() == []
    assert b.eval("document.documentElement.dataset.ready") == "yes"
    texts = b.eval("[...document.querySelectorAll('main *')].filter((e) => !e.children.length).map((e) => e.textContent).join('\\n')")
    assert texts and "[object" not in texts and "undefined" not in texts and "NaN" not in texts
    bare = b.eval("[...document.querySelectorAll('main *')].flatMap((e) => [...e.childNodes]).filter((n) => n.nodeType === 3)"
                  ".map((n) => n.textContent.trim()).filter((t) => ['false', 'true', 'null'].includes(t))")
    assert bare == []


def view(b):
    """What the timeline shows: begin and end, ns."""
    return [int(x) for x in b.eval("(() => { const d = document.getElementById('timeline-box').dataset; return [d.begin, d.end]; })()")]


# ---- the file ----

def test_file_is_one_whole_page(page_of):
    path, analysis = page_of(trace())
    page = Page(read(path))
    assert page.open == []
    assert sorted(page.scripts) == ["analysis", "script", "tables", "timeline"]
    assert json.loads(page.scripts["analysis"]) == analysis, "page and --json disagree"
    assert json.loads(page.scripts["tables"])["calls"]
    assert [u for u in page.links if not u.startswith(("#", "data:"))] == []
    assert os.stat(path).st_mode & 0o777 == 0o600, "as private as its window"


def test_file_timeline_holds_the_device(page_of):
    path, analysis = page_of(trace())
    line = json.loads(Page(read(path)).scripts["timeline"])
    device = next(l for l in line["lanes"] if l["kind"] == "device")
    stream = next(t for t in device["tracks"] if t["what"] == "stream")
    assert (stream["spans"], stream["cell"]) == (2 * STEPS, 0)
    begins, lengths, at = [], [], 0
    for i in range(0, len(stream["d"]), 4):
        at += stream["d"][i]
        begins.append(at)
        lengths.append(stream["d"][i + 1])
    assert lengths == [1500000, 50000] * STEPS
    assert [b - begins[0] for b in begins[::2]] == [i * STEP_US * 1000 for i in range(STEPS)]
    assert sum(lengths) == analysis["devices"][0]["busy_ns"]


def test_file_is_bounded(page_of):
    small, large = (os.path.getsize(page_of(trace(steps=n), f"w{n}")[0]) for n in (3000, 60000))
    assert large < 8 << 20, large
    assert large < 6 * small, "twenty times the records, but not twenty times the page"


def test_file_with_a_name_for_each_kernel(page_of):
    """Programs that compile their kernels may give each its own name, and long ones."""
    content, n = trace(steps=20000), 0
    for row in content["traceEvents"]:
        if row.get("cat") == "kernel":
            n += 1
            row["name"] = f"kernel_{n}_" + "x" * 400
    path, analysis = page_of(content)
    page = Page(read(path))
    assert os.path.getsize(path) < 8 << 20
    held = json.loads(page.scripts["analysis"])
    assert (len(held["kernels"]), held["kernels_rows"]) == (200, n)
    assert held["kernels"] == analysis["kernels"][:200]
    assert len(json.loads(page.scripts["timeline"])["names"]) > 1000


def test_file_says_what_it_thinned(page_of):
    line = json.loads(Page(read(page_of(trace(steps=60000))[0])).scripts["timeline"])
    tracks = [t for l in line["lanes"] for t in l["tracks"]]
    assert line["joined"] == sum(t["spans"] for t in tracks if t["cell"]) > 0
    for t in tracks:
        seen, i = 0, 0
        while i < len(t["d"]):
            seen += t["d"][i + 3]
            i += 5 if t["d"][i + 3] > 1 else 4
        assert seen == t["spans"], "each span is in one piece"


def test_hostile_names_stay_text(page_of):
    path, _ = page_of(trace(EVIL))
    page = Page(read(path))
    assert sorted(page.scripts) == ["analysis", "script", "tables", "timeline"]
    assert page.tags.count("script") == 4 and "img" not in page.tags
    assert f"gemm_{EVIL}" in json.loads(page.scripts["timeline"])["names"], "the name itself is there, as data"


def test_options(tool, page_of):
    path, _ = page_of(trace(steps=3))
    window = os.path.join(tool.folder, "w.hbw")
    refused = tool.run("analyze", window, "--html", path)
    assert refused.code != OK and len(refused.sentences()) == 1 and "--force" in refused.sentences()[0]
    tool.run("analyze", window, "--html", path, "--force", code=OK)
    assert tool.run("analyze", window, "--html", "-", code=OK).out == read(path)
    tool.run("analyze", window, "--html", "x.html", "--json", code=USAGE)
    tool.run("analyze", window, window, "--html", "x.html", code=USAGE)
    assert not os.path.exists(os.path.join(tool.folder, "x.html"))


def test_damaged_windows(tool, page_of):
    """A window that is cut off anywhere gives a page of what there is, and a comparison with the whole one."""
    page_of(trace())
    window = os.path.join(tool.folder, "w.hbw")
    with open(window, "rb") as f:
        whole = f.read()
    for part in (1, 3, 5, 7, 9):
        cut = os.path.join(tool.folder, f"cut{part}.hbw")
        with open(cut, "wb") as f:
            f.write(whole[:len(whole) * part // 10])
        made = tool.run("analyze", cut, "--html", cut + ".html")
        assert made.code in (OK, FAILED) and (made.code == OK or len(made.sentences()) == 1), made
        if made.code != OK:
            continue
        page = Page(read(cut + ".html"))
        assert page.open == [] and not json.loads(page.scripts["analysis"])["window"]["complete"]
        told = json.loads(tool.run("compare", window, cut, "--json", code=OK).out)
        assert "damage" in {c["kind"] for c in told["cautions"]}


def launches(name="gemm"):
    """Short operators of which each launches a kernel that takes longer than all else."""
    rows = []
    for i in range(STEPS):
        at = 1000 + i * STEP_US
        rows += [{"ph": "X", "cat": cat, "name": what, "pid": pid, "tid": 7, "ts": at + after, "dur": dur, "args": args}
                 for cat, what, pid, after, dur, args in (
                     ("cpu_op", f"aten::{name}", 7, 0, 90, {"External id": i}),
                     ("cuda_runtime", "cudaLaunchKernel", 7, 10, 40, {"correlation": i + 1}),
                     ("kernel", name, 0, 300, 700, {"correlation": i + 1, "device": 0, "stream": 7, "context": 1}))]
    return {"traceEvents": rows}


def long_path(tool, page_of, stretch, content=None):
    """A page with the path of a stretch, its analysis, and the timeline's row of it: [(begin, length, name)], ns."""
    page_of(content or trace())
    window, page = os.path.join(tool.folder, "w.hbw"), os.path.join(tool.folder, "path.html")
    tool.run("analyze", window, f"--critical-path={stretch}", "--html", page, code=OK)
    analysis = json.loads(tool.run("analyze", window, f"--critical-path={stretch}", "--json", code=OK).out)
    line = json.loads(Page(read(page)).scripts["timeline"])
    (track,) = [t for l in line["lanes"] for t in l["tracks"] if t["what"] == "longest path"]
    at, spans = 0, []
    for i in range(0, len(track["d"]), 4):
        at += track["d"][i]
        spans.append((at, track["d"][i + 1], line["names"][track["d"][i + 2]]))
    return page, analysis, line, spans


def test_file_holds_the_path(tool, page_of):
    """Link by link as `--json` has it, and only where it was asked for."""
    page, analysis, line, spans = long_path(tool, page_of, "aten:5")
    path = analysis["critical_path"]
    links = [n for n in path["path"] if n.get("ns")]
    assert len(links) > 1 and json.loads(Page(read(page)).scripts["analysis"])["critical_path"] == path
    assert [(length, name.split(": ")[0]) for _, length, name in spans] == [(n["ns"], n["part"]) for n in links]
    ends = [line["critical"]["begin"] + n["ts_ns"] - path["begin_ns"] for n in links]
    assert [b + length for b, length, _ in spans] == ends
    assert sum(length for _, length, _ in spans) == path["length_ns"]
    assert any(f["why"].startswith("critical path") for f in line["focus"])
    plain = os.path.join(tool.folder, "w.html")
    assert "longest path" not in [t["what"] for l in json.loads(Page(read(plain)).scripts["timeline"])["lanes"] for t in l["tracks"]]


# ---- in a browser ----

def test_browser_loads_alone(page_of, chromium):
    path, analysis = page_of(trace())
    chromium.open(path)
    check_clean(chromium)
    text = chromium.eval("document.getElementById('main').innerText")
    assert analysis["verdict"]["text"] in text
    assert analysis["findings"], "this trace has something to find"
    for f in analysis["findings"]:
        for key in ("title", "id", "text", "fix"):
            assert f[key] in text, f"{f['id']}: {key} is not on the page"
    stacks = chromium.eval("[...document.querySelectorAll('#findings pre')].map((p) => p.textContent)")
    assert any("one_step (engine.py:142)" in s.split("\n") for s in stacks), stacks[:3]
    sections = chromium.eval("[...document.querySelectorAll('section')].map((s) => s.id)")
    assert sections == ["verdict", "findings", "steps", "timeline", "flames", "devices", "tables", "receipt"]


def test_browser_keys_move_the_timeline(page_of, chromium):
    chromium.open(page_of(trace())[0])
    chromium.wait("document.getElementById('timeline-box').dataset.end")
    begin, end = view(chromium)
    # By Tab alone, as somebody without a mouse gets there; the first stop is a way past the head.
    chromium.key("Tab")
    assert chromium.eval("document.activeElement.getAttribute('href')") == "#main"
    for _ in range(80):
        chromium.key("Tab")
        if chromium.eval("document.activeElement.id") == "timeline-box":
            break
    assert chromium.eval("document.activeElement.id") == "timeline-box"
    chromium.key("ArrowUp", 3)
    a, b = view(chromium)
    assert begin < a < b < end and (b - a) / (end - begin) == pytest.approx(0.6 ** 3, rel=0.01)
    chromium.key("ArrowRight")
    c, d = view(chromium)
    assert c > a and d - c == pytest.approx(b - a, abs=2)
    chromium.key("j", 2)
    chromium.key("n")
    assert re.search(r"at \d+\.\d+ s", chromium.eval("document.querySelector('#timeline [role=status]').textContent"))
    chromium.key("Escape")
    assert view(chromium) == [begin, end]
    check_clean(chromium)


def test_browser_shows_an_instance(page_of, chromium):
    path, analysis = page_of(trace())
    chromium.open(path)
    worst = analysis["findings"][0]["instances"][0]
    chromium.eval("document.querySelector('#findings button.show').click()")
    chromium.frame()
    a, b = view(chromium)
    assert a <= worst["ts"] and worst["ts"] + worst["dur"] <= b
    assert b - a < 4 * worst["dur"] + 10 ** 6
    assert chromium.eval("document.activeElement.id") == "timeline-box"


def test_browser_draws_something(page_of, chromium):
    chromium.open(page_of(trace())[0])
    chromium.frame()
    colours = chromium.eval("""(() => {
        const c = document.querySelector('#timeline-box canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set();
        for (let i = 0; i < d.length; i += 4)
            seen.add(`${d[i]} ${d[i + 1]} ${d[i + 2]}`);
        return seen.size; })()""")
    assert colours > 20


def test_browser_flames_by_keyboard(page_of, chromium, tool):
    content = trace()
    for i in range(STEPS):
        content["traceEvents"] += [{"ph": "X", "cat": "python_function", "name": f"engine.py({n}): {f}", "pid": 7, "tid": 7,
                                    "ts": 1000 + i * STEP_US + n, "dur": 9000 - 10 * n, "args": {"Python id": 3 * i + n, "Python parent id": 3 * i + n - 1 if n > 1 else None}}
                                   for n, f in ((1, "main"), (2, "step"))]
    chromium.open(page_of(content)[0])
    assert chromium.eval("document.querySelectorAll('.flame [role=treeitem]').length") > 3
    chromium.eval("document.querySelector('.flame [tabindex=\"0\"]').focus()")
    chromium.key("ArrowDown", 2)
    label = chromium.eval("document.activeElement.getAttribute('aria-label')")
    assert chromium.eval("document.activeElement.getAttribute('aria-level')") == "3" and "%" in label
    chromium.key("Enter")
    assert chromium.eval("document.querySelector('.flame [role=treeitem]').getAttribute('aria-label')") == label
    chromium.key("Escape")
    assert chromium.eval("document.querySelector('.flame [role=treeitem]').textContent") == "all"
    check_clean(chromium)


PATH = "document.querySelector('#critical-path canvas')"


def test_browser_path(tool, page_of, chromium):
    """Its section: parts, strip, tables; by key and by click the timeline goes to a link."""
    page, analysis, line, spans = long_path(tool, page_of, "aten:5", launches())
    path = analysis["critical_path"]
    assert (path["host_ns"], path["launch_ns"], path["compute_ns"]) == (10_000, 290_000, 700_000)
    chromium.open(page)
    chromium.frame()
    check_clean(chromium)
    sections = chromium.eval("[...document.querySelectorAll('section')].map((s) => s.id)")
    assert sections[2:5] == ["steps", "critical-path", "timeline"]
    text = chromium.eval("document.getElementById('critical-path').innerText")
    for part in ("host 10.0 us", "launch delay 290 us", "compute 700 us (70.0 %)"):
        assert part in text
    assert f"number {path['instance']}, process {path['pid']}" in text
    assert chromium.eval(PATH + ".getAttribute('aria-label')")
    colours = chromium.eval("(() => { const c = " + PATH + ", d = c.getContext('2d').getImageData(0, Math.floor(c.height / 2), c.width, 1).data; const s = new Set();"
                            " for (let i = 0; i < d.length; i += 4) s.add(`${d[i]} ${d[i + 1]} ${d[i + 2]}`); return s.size; })()")
    assert colours >= 3, "parts have colours of their own"
    # By keyboard: the first link's button, which says what it shows.
    button = "document.querySelector('#critical-path table button.show')"
    assert "Show in the timeline: " in chromium.eval(button + ".getAttribute('aria-label')")
    chromium.eval(button + ".focus()")
    chromium.key("Enter")
    a, b = view(chromium)
    begin, length, _ = spans[0]
    assert a <= begin and begin + length <= b and b - a < 3 * length + 10 ** 5
    assert chromium.eval("document.activeElement.id") == "timeline-box"
    # By a click in the middle of the strip: the link that is there.
    chromium.eval(PATH + ".scrollIntoView({block: 'center', behavior: 'instant'})")
    chromium.frame()
    box = chromium.eval("(() => { const r = " + PATH + ".getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()")
    at, (begin, length, _) = line["critical"], max(spans, key=lambda s: s[1])
    last = max(at["end"], spans[-1][0] + spans[-1][1])
    middle = (begin + length / 2 - at["begin"]) / (last - at["begin"])
    chromium.click(box[0] + middle * box[2], box[1] + box[3] / 2)
    a, b = view(chromium)
    assert a <= begin and begin + length <= b and b - a < 3 * length + 10 ** 5
    check_clean(chromium)


def test_browser_path_on_a_phone(tool, page_of, chromium):
    chromium.open(long_path(tool, page_of, "aten:5", launches("a_name_without_any_place_to_break_" * 8))[0], 390, 800)
    chromium.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    chromium.frame()
    check_clean(chromium)
    assert chromium.eval("document.documentElement.scrollWidth") <= 390
    width = chromium.eval(PATH + ".clientWidth")
    assert 300 < width <= 390 and chromium.eval(PATH + ".width") == width


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_browser_phone(page_of, chromium, dark):
    long = "a_name_without_any_place_to_break_" * 8
    chromium.open(page_of(trace(long))[0], 390, 800, dark)
    chromium.frame()
    check_clean(chromium)
    assert chromium.eval("document.documentElement.scrollWidth") <= 390
    chromium.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    chromium.frame()
    assert chromium.eval("document.documentElement.scrollWidth") <= 390
    back = chromium.eval("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", back))) < 200) == dark, back


def test_browser_hostile(page_of, chromium):
    chromium.open(page_of(trace(EVIL))[0])
    chromium.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    chromium.frame()
    check_clean(chromium)
    assert "owned" not in chromium.eval("document.title").split(" - ")[0]
    assert chromium.eval("document.querySelectorAll('img').length") == 0
    assert "</script><script>" in chromium.eval("document.getElementById('tables').nextElementSibling.textContent + document.body.innerText")


def test_browser_policy_stops_scripts(page_of, chromium, tool):
    """Were there a hole, the policy in the page's head would still let nothing run."""
    path, _ = page_of(trace(steps=3))
    holed = os.path.join(tool.folder, "holed.html")
    with open(holed, "w", encoding="utf-8") as f:
        f.write(read(path).replace("<footer>", "<script>document.title = 'owned'</script><img src='https://example.org/x.png' alt=''><footer>"))
    chromium.open(holed)
    chromium.frame()
    assert chromium.eval("document.title") != "owned"
    assert any("Content Security Policy" in c for c in chromium.complaints()), chromium.complaints()
    assert chromium.eval("document.documentElement.dataset.ready") == "yes"


def test_browser_simulated_and_traced(hb, workload, chromium):
    """A window of a real trace: its banner, its threads, its stacks."""
    target = workload("accel_loop", "--lib", paths.built("sim", "libcudart.so.13"), "--launches", 1000000, "--copies", 1000000,
                      "--syncs", 1000000, "--rate", 2000)
    window, _ = hb.trace("-p", target.pid, duration="2s")
    page = os.path.join(hb.folder, "traced.html")
    hb.run("analyze", window, "--html", page, code=OK)
    chromium.open(page)
    check_clean(chromium)
    assert "simulated" in chromium.eval("document.getElementById('banners').innerText")
    assert "thread" in chromium.eval("[...document.querySelectorAll('#tables summary')].map((s) => s.textContent.toLowerCase()).join()")
