# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`doctor`: what it says must be true, which taking rights away shows."""
import json
import os
import subprocess

import pytest

from lib.processes import wait_for
from lib.tool import KERNEL, OK, TARGET, USAGE

pytestmark = pytest.mark.beside


def checks(result):
    """Checks by id; those about processes come as lists under "target-..."."""
    doc = json.loads(result.out)
    found = {}
    for c in doc["checks"]:
        found.setdefault(c["id"], []).append(c)
    return doc, found


def test_here_tracing_works(hb):
    doc, found = checks(hb.run("doctor", "--json", code=OK))
    assert doc["usable"] is True
    for name in ("load", "ring-buffer", "tp-btf", "task-storage", "uprobe", "perf-mmap", "btf", "pid-namespace"):
        assert found[name][0]["need"] == "must" and found[name][0]["answer"] == "yes", found[name]


def ours():
    """What the kernel holds of any doctor."""
    found = []
    for kind in ("prog", "map"):
        done = subprocess.run(["bpftool", "-j", kind, "list"], capture_output=True, text=True, timeout=60)
        found += [f"{kind} {x['id']}" for x in json.loads(done.stdout or "[]") if x.get("name") == "hb_doctor"]
    return found


def test_nothing_is_left_behind(hb):
    before = set(ours())
    hb.run("doctor", code=OK)
    wait_for(lambda: not set(ours()) - before, what="the end of the doctor's programs and maps")  # freed after a grace period


def test_without_capabilities(tool):
    """Each "no" comes with its remedy, and what could not be tried is not called broken."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to have something to take away")
    result = tool.run("doctor", "--json", code=KERNEL,
                      prefix=["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"])
    doc, found = checks(result)
    assert doc["usable"] is False
    assert found["load"][0]["answer"] == "no" and "CAP_BPF" in found["load"][0]["remedy"]
    assert found["ring-buffer"][0]["answer"] == "no"
    assert found["uprobe"][0]["answer"] == "untested" and found["uprobe-multi"][0]["answer"] == "untested"
    for c in (c for group in found.values() for c in group):
        assert c["answer"] != "no" or c["remedy"], c
        assert c["needed_for"], c
    text = tool.run("doctor", code=KERNEL, prefix=["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"])
    assert text.out.rstrip().endswith("Tracing would not work here.")
    assert "remedy: run as root" in text.out


@pytest.mark.parametrize("folder, check", [("/sys/kernel/btf", "btf"), ("/sys/bus/event_source/devices", "uprobe")])
def test_what_is_missing_is_missed(hb, folder, check):
    if not os.path.isdir(folder):
        pytest.skip(f"there is no {folder} here")
    hide = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'mount -t tmpfs none {folder} && exec "$@"', "sh"]
    doc, found = checks(hb.run("doctor", "--json", code=KERNEL, prefix=hide))
    assert doc["usable"] is False and found[check][0]["answer"] == "no" and found[check][0]["remedy"]
    assert found["load"][0]["answer"] == "yes"


def test_in_a_pid_namespace(hb):
    doc, found = checks(hb.run("doctor", "--json", code=KERNEL, prefix=["unshare", "--pid", "--fork", "--mount-proc"]))
    assert found["pid-namespace"][0]["answer"] == "no" and "hostPID" in found["pid-namespace"][0]["remedy"]
    assert doc["usable"] is False


def test_about_a_process(hb, start):
    target = start(["sleep", "60"])
    _, found = checks(hb.run("doctor", "--json", "-p", target.pid, code=OK))
    assert [c["pid"] for c in found["target-access"]] == [target.pid]
    assert found["target-access"][0]["answer"] == "yes" and found["target-runtime"][0]["answer"] == "no"
    text = hb.run("doctor", "-p", target.pid, code=OK).out
    assert f"Process {target.pid}:" in text


def test_refusals(tool):
    pid = 4194304
    result = tool.run("doctor", "-p", pid, code=TARGET)
    assert result.sentences() == [f"herschel-bpf: there is no process {pid}"] and result.out == ""
    for args in (["doctor", "-p", "x"], ["doctor", "stray"], ["doctor", "--nonsense"], ["ps", "stray"], ["ps", "--nonsense"]):
        result = tool.run(*args, code=USAGE)
        assert len(result.err.splitlines()) == 1 and result.out == "", result
