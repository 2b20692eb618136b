# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`analyze` as a command: its options, several files, files that are damaged."""
import json
import os
import re
import subprocess

import pytest

from lib import paths
from lib import tool as t
from lib import traces

pytestmark = pytest.mark.beside


@pytest.fixture
def window(tool):
    """An imported window: device records, calls, Python stacks."""
    path = os.path.join(tool.folder, "w.hbw")
    tool.run("import", traces.find("T1"), "-o", path, code=t.OK)
    return path


def test_usage(tool, window):
    for args, word in (((), "needs a window file"), (("--rows", "x", window), "--rows takes a number"),
                       (("--threshold", "p01.nothing=1", window), "nothing"), (("-t", "p01", window), "p01"),
                       (("--thresholds", "/nowhere", window), "/nowhere"), (("--nothing", window), "no option")):
        r = tool.run("analyze", *args, code=t.USAGE)
        assert len(r.sentences()) == 1 and word in r.err and not r.out, r
    r = tool.run("analyze", "/nowhere.hbw", code=t.FAILED)
    assert len(r.sentences()) == 1 and "/nowhere.hbw" in r.err, r


def test_several_files(tool, window):
    text = tool.run("analyze", window, window, code=t.OK).out
    assert text.count("VERDICT") == 2 and text.count(f"== {window}") == 2
    decoder, out, at = json.JSONDecoder(), tool.run("analyze", "--json", window, window, code=t.OK).out, 0
    for _ in range(2):
        one, at = decoder.raw_decode(out, at)
        assert one["file"] == window and one["devices"]
        at += 1  # the newline
    assert at == len(out)
    # a file that is none keeps no other from being analysed, and the exit status tells
    r = tool.run("analyze", window, "/nowhere.hbw", window, code=t.FAILED)
    assert r.out.count("VERDICT") == 2 and len(r.sentences()) == 1 and "/nowhere.hbw" in r.err


@pytest.mark.parametrize("option", ["--html", "--plan-out"])
def test_a_window_is_not_written_over(tool, window, option):
    """Not even when it is called by another name, and not with --force."""
    link = os.path.join(tool.folder, "link")
    os.symlink(window, link)
    before = open(window, "rb").read()
    for name in (window, link):
        r = tool.run("analyze", "--force", f"{option}={name}", window, code=t.USAGE)
        assert len(r.sentences()) == 1 and "is the window itself" in r.err and not r.out
    assert open(window, "rb").read() == before


def smallest(default):
    """The smallest value that a threshold with this default takes."""
    return "0%" if "%" in default else "1B" if default.endswith("B") else "1ns" if default.endswith("s") and "/" not in default else "0"


@pytest.mark.parametrize("trace", ["T1", "T9", "T11"])
def test_thresholds_at_their_ends(tool, trace):
    """Whatever is asked for: what is then found where there is next to nothing is an answer, too."""
    with open(paths.source("docs", "patterns.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `([a-z0-9]+\.[a-z_0-9]+)` \| ([^|]+) \|", f.read(), re.M)
    assert len(rows) > 150
    path, window = os.path.join(tool.folder, "t"), os.path.join(tool.folder, "w.hbw")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(f"{key}={smallest(default.strip())}\n" for key, default in rows)
    tool.run("import", traces.find(trace), "-o", window, code=t.OK)
    assert json.loads(tool.run("analyze", "--json", window, "--thresholds", path, code=t.OK).out)["findings"]


def test_thresholds(tool, window):
    """Raised out of reach, nothing is above the gate; from a file likewise."""
    def found(*args):
        return [f["id"] for f in json.loads(tool.run("analyze", "--json", window, *args, code=t.OK).out)["findings"]]

    assert found()
    gates = ["exposed_share=100%", "delay_share=100%", "device_share=100%", "event=1h", "step_share=100%"]
    path = os.path.join(tool.folder, "t")
    with open(path, "w", encoding="utf-8") as f:
        f.write("# none shall pass\n" + "".join(f"gate.{g}\n" for g in gates))
    assert found("--thresholds", path) == found(*[a for g in gates for a in ("-t", f"gate.{g}")]) == []
    text = tool.run("analyze", window, "--thresholds", path, code=t.OK).out
    assert "none: of the" in text


def test_rows(tool, window):
    few, every = (tool.run("analyze", window, "--rows", n, code=t.OK).out for n in ("1", "0"))
    assert "more (--rows 0 shows all)" in few and "--rows 0" not in every
    assert len(few.splitlines()) < len(every.splitlines())


def test_reader_that_has_seen_enough(tool, window):
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {tool.path} analyze {window} | head -1"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.stdout.count("\n") == 1 and not done.stderr


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_cut_files(tool, window, share):
    """Whatever is left is analysed, and what is missing is said; or it is no window any more."""
    with open(window, "rb") as f:
        data = f.read()
    cut = os.path.join(tool.folder, "cut.hbw")
    with open(cut, "wb") as f:
        f.write(data[:int(len(data) * share)])
    r = tool.run("analyze", cut, "--json")
    if r.code == t.OK:
        result = json.loads(r.out)
        assert "damage" in result["window"] and not result["loss"]["known"]
        for d in result["devices"]:
            assert d["busy_ns"] + d["idle_ns"] == d["span_ns"]
        text = tool.run("analyze", cut, code=t.OK).out
        assert "DAMAGED" in text and "VERDICT" in text and "nan" not in text.lower().split()
    else:
        assert r.code == t.FAILED and len(r.sentences()) == 1, r


def test_garbled_payloads(tool, window):
    """Frames with a wrong checksum are left out; nothing hangs or crashes."""
    with open(window, "rb") as f:
        data = bytearray(f.read())
    broken = os.path.join(tool.folder, "broken.hbw")
    for at in range(200, len(data), max(1, len(data) // 25)):
        copy = bytearray(data)
        copy[at] ^= 0x5a
        with open(broken, "wb") as f:
            f.write(copy)
        r = tool.run("analyze", broken, "--json")
        assert r.code in (t.OK, t.FAILED), r
        if r.code == t.OK:
            json.loads(r.out)
