# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plans: written from findings, approved, recorded; and everything that has to be refused on the way."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

import pytest
from lib.engine import Engine, answered
from lib.tool import FAILED, OK, TARGET, USAGE

pytestmark = pytest.mark.beside

WORK = r"""
import time
def work(n):
    return sum(range(n))
print("ready", flush=True)
while True:
    work(1000)
    time.sleep(0.002)
"""


def boot_id():
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return f.read().strip()


def started(pid):
    """Monotonic ns at which a process started."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    asleep = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return ticks * (10**9 // os.sysconf("SC_CLK_TCK")) - asleep


def plan_of(pid, **record):
    return {"plan": 1, "window": {"id": "first", "boot": boot_id()},
            "target": [{"pid": pid, "start_ns": started(pid), "name": "work"}],
            "record": record or {"syscalls": "all"}, "reasons": [{"pattern": "P21"}, {"pattern": "P28"}], "cost": []}


@pytest.fixture
def put(tool):
    """put(plan) -> path of a file with it."""

    def write(plan, name="x.plan"):
        path = os.path.join(tool.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(plan if isinstance(plan, str) else json.dumps(plan))
        os.chmod(path, 0o644)
        return path

    return write


@pytest.fixture
def target(start):
    return start([sys.executable, "-c", WORK], ready="ready")


def refused(result, code, *words):
    assert result.code == code, result
    said = result.sentences()
    assert len(said) == 1 and all(w in said[0] for w in words), result


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def shown_hash(tool, path):
    return tool.run("plan", "show", path, code=OK).out.split("sha256 ")[1].split()[0]


# ---- recording by a plan ----


def test_a_plan_is_recorded_as_it_says(hb, put, target):
    """Every system call, calls of one function, so many samples, so long: and the window says by which plan and whose word."""
    path = put(plan_of(target.pid, duration="2s", syscalls="all", python="stacks", calls=["*:work"], frequency="199",
                       **{"py-hook": "eval_frame"}))
    hb.run("plan", "approve", path, "--yes", "--as", "alice", code=OK)
    out = os.path.join(hb.folder, "second.hbw")
    begin = time.monotonic()
    hb.run("trace", "--plan", path, "-o", out, code=OK)
    assert time.monotonic() - begin < 30
    meta = hb.json(out)["window"]["meta"]
    assert meta["plan_window"] == "first" and meta["plan_patterns"] == "P21 P28"
    assert meta["plan_hash"] == shown_hash(hb, path) and meta["plan_approver"].startswith(f"alice (uid {os.getuid()}) on ")
    assert meta["syscalls"] == "all" and meta["sample_hz"] == "199" and meta["duration_asked_ns"] == str(2 * 10**9)
    assert sorted(v for k, v in meta.items() if k.startswith("option.")) == sorted(
        ["duration 2s", "syscalls all", "python stacks", "calls *:work", "py-hook eval_frame", "frequency 199"])
    window = hb.window(out)
    assert [r for r in window.of("syscall", pid=target.pid) if r["name"] == "clock_nanosleep"]
    assert len(window.of("py.call", pid=target.pid, qualname="work")) > 100


@pytest.mark.alone  # an engine under load, whose findings are judged
def test_a_plan_from_findings_to_the_second_window(hb, tmp_path, start):
    """From a window of a live engine: thin findings, made so by thresholds, their plan, its approval, the second window."""
    engine = Engine(start, tmp_path, **{"kv-evict-ms": 100})
    client = engine.load(25)
    time.sleep(1)
    table = os.path.join(hb.folder, "libc.tbl")
    with open(table, "w", encoding="utf-8") as f:
        f.write("# a remark\n\napi libc\n  libc.so*  getpid  event  runtime  entry\n")
    # Often enough to meet what packs and unpacks messages some times: at 99 Hz it would be once or twice, or never.
    first, _ = hb.trace("-p", engine.pid, "--probes", table, "--frequency", "499", duration="4s")
    path = os.path.join(hb.folder, "e.plan")
    # Each finding on its own, however small; those that rest on samples on too few of them.
    result = hb.run("analyze", first, "--json", "--plan-out", path, "-t", "gate.samples=1000000", "-t", "p28.share=0.1%",
                    "-t", "p28.exposed=0%", "-t", "gate.exposed_share=0.001%", "-t", "gate.covered_share=200%",
                    "-t", "gate.step_share=0%", code=OK)
    found = [f for f in json.loads(result.out)["findings"] if f["confidence"] == "low"]
    plan, meta = load(path), hb.json(first)["window"]["meta"]
    assert plan["window"]["id"] == meta["window_id"] and plan["window"]["file"] == first
    assert [p["pid"] for p in plan["target"]] == [engine.pid]
    assert {r["pattern"] for r in plan["reasons"]} <= {f["id"] for f in json.loads(result.out)["findings"]}
    low = [r for r in plan["reasons"] if r["confidence"] == "low"]
    assert found and low and all(r["why"] and r["records"] for r in low), (found, plan)
    assert plan["record"]["frequency"] == "997" and 10 <= int(plan["record"]["duration"][:-1]) <= 60
    assert plan["record"]["probe"] == ["api libc", "libc.so*  getpid  event  runtime  entry"] and "probes" not in plan["record"]
    receipt = hb.json(first)["receipt"]
    cost = {c["what"]: c for c in plan["cost"]}
    sample = next(h for h in receipt["hooks"] if h["hook"] == "sample")
    wall = plan["window"]["end_ns"] - plan["window"]["start_ns"]
    assert abs(cost["what the first window recorded"]["ns_per_s"] - (receipt["cost_ns"] - sample["cost_ns"]) * 10**9 / wall) < 10
    more = cost["CPU samples at 997 Hz"]
    assert more["known"] and more["price_ns"] == sample["price_ns"]
    assert abs(more["rate_per_s"] - sample["hits"] * 10**9 / wall * 997 / 499) < 20
    refused(hb.run("trace", "--plan", path), TARGET, "not approved")
    plan["record"]["duration"] = "3s"  # the operator's choice, before the approval
    with open(path, "w", encoding="utf-8") as f:
        json.dump(plan, f)
    hb.run("plan", "approve", path, "--yes", code=OK)
    second = os.path.join(hb.folder, "second.hbw")
    hb.run("trace", "--plan", path, "-o", second, code=OK)
    assert hb.json(second)["window"]["meta"]["plan_window"] == meta["window_id"]
    assert hb.json(second)["window"]["meta"]["sample_hz"] == "997"
    hb.run("analyze", first, second, code=OK)
    answered(client)
    engine.stop()


def test_a_finding_that_is_sure_makes_no_plan(hb, target):
    """Nothing accelerated ran: nothing is found, and no file appears without a reason in it."""
    first, _ = hb.trace("-p", target.pid, duration="1s")
    path = os.path.join(hb.folder, "none.plan")
    result = hb.run("analyze", first, "--plan-out", path, code=OK)
    if os.path.exists(path):
        assert load(path)["reasons"]
    else:
        assert "no plan is written" in result.err


# ---- approval ----


def test_without_an_approval_nothing_is_recorded(tool, put, target):
    path = put(plan_of(target.pid))
    refused(tool.run("trace", "--plan", path, "-o", "x.hbw"), TARGET, "not approved", "plan approve")
    assert not os.path.exists(os.path.join(tool.folder, "x.hbw"))
    refused(tool.run("plan", "approve", path), USAGE, "--key", "--yes")
    refused(tool.run("plan", "approve", path, "--yes", "--key", "k"), USAGE, "not both")
    assert "approval" not in load(path)


def test_a_changed_plan_is_refused(hb, put, target):
    """By a member, by its target, by its price; blanks are no change."""
    path = put(plan_of(target.pid, duration="1s", python="off"))
    hb.run("plan", "approve", path, "--yes", code=OK)
    approved = load(path)
    assert hashlib.sha256((json.dumps({k: v for k, v in approved.items() if k != "approval"}, separators=(",", ":")) + "\n").encode()
                          ).hexdigest() == approved["approval"]["plan"]  # docs/plans.md: anybody can compute it
    put(json.dumps(approved, indent=7))
    hb.run("trace", "--plan", path, "-o", "same.hbw", code=OK)
    for change in (lambda p: p["record"].update(syscalls="all"), lambda p: p["target"][0].update(start_ns=1),
                   lambda p: p["reasons"].pop(), lambda p: p["cost"].append({"what": "all", "known": False})):
        changed = json.loads(json.dumps(approved))
        change(changed)
        put(changed)
        refused(hb.run("trace", "--plan", path, "-o", "changed.hbw"), TARGET, "was changed after")
    assert "changed after" in hb.run("plan", "show", path, code=OK).out


@pytest.fixture
def key(tool):
    """key(name) -> (private key, file of allowed signers with it alone)."""
    if not shutil.which("ssh-keygen"):
        pytest.skip("ssh-keygen is not installed")

    def make(name):
        path = os.path.join(tool.folder, name)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True, stdin=subprocess.DEVNULL)
        with open(path + ".pub", encoding="ascii") as f:
            line = f.read().strip()
        with open(path + ".signers", "w", encoding="ascii") as f:
            f.write(f"{name}@example.org {line}\n")
        os.chmod(path + ".signers", 0o600)
        return path, path + ".signers"

    return make


def test_a_signed_plan_is_the_signers(hb, put, target, key):
    """Whoever owns the file: the signature counts, and only that of somebody allowed."""
    mine, allowed = key("alice")
    _, strangers = key("mallory")
    path = put(plan_of(target.pid, duration="1s", python="off"))
    hb.run("plan", "approve", path, "--key", mine, code=OK)
    os.chown(path, 12345, 12345)
    out = os.path.join(hb.folder, "signed.hbw")
    hb.run("trace", "--plan", path, "--signers", allowed, "-o", out, code=OK)
    assert "signed as alice@example.org" in hb.json(out)["window"]["meta"]["plan_approver"]
    assert "signed as alice@example.org" in hb.run("plan", "show", path, "--signers", allowed, code=OK).out
    refused(hb.run("trace", "--plan", path, "--signers", strangers, "-o", "no.hbw"), TARGET, "signed by nobody")
    refused(hb.run("trace", "--plan", path, "-o", "no.hbw", env={"HOME": hb.folder}), TARGET, "--signers")
    os.makedirs(os.path.join(hb.folder, ".ssh"))
    shutil.copy(allowed, os.path.join(hb.folder, ".ssh", "allowed_signers"))
    hb.run("trace", "--plan", path, "-o", "home.hbw", env={"HOME": hb.folder}, code=OK)
    # Somebody else's name on it, another plan under it.
    signed = load(path)
    signed["approval"]["by"] = "bob"
    put(signed)
    refused(hb.run("trace", "--plan", path, "--signers", allowed), TARGET, "does not fit")
    signed = load(path)
    signed["record"]["syscalls"] = "all"
    put(signed)
    signed["approval"]["plan"] = shown_hash(hb, path)
    put(signed)
    refused(hb.run("trace", "--plan", path, "--signers", allowed), TARGET, "does not fit")
    signed["approval"]["signature"] = []
    put(signed)
    refused(hb.run("trace", "--plan", path, "--signers", allowed), TARGET, "no signature")
    refused(hb.run("plan", "approve", path, "--key", os.path.join(hb.folder, "nokey")), FAILED, "nokey")


def test_an_approval_without_a_key_is_of_this_machine(tool, put, target):
    """On another machine, and after the next start, it counts for nothing."""
    path = put(plan_of(target.pid))
    tool.run("plan", "approve", path, "--yes", code=OK)
    other = os.path.join(tool.folder, "other-id")
    with open(other, "w", encoding="ascii") as f:
        f.write("0123456789abcdef0123456789abcdef\n")
    for place in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        inside = ["unshare", "-m", "sh", "-c", f'mount --bind {other} {place} && exec "$@"', "sh"]
        if subprocess.run([*inside, "true"], stderr=subprocess.DEVNULL).returncode:
            pytest.skip("a mount namespace of our own cannot be had here")
        refused(tool.run("trace", "--plan", path, prefix=inside), TARGET, "valid there", "--key")
    os.chown(path, 12345, 12345)
    refused(tool.run("trace", "--plan", path), TARGET, "belongs to uid 12345")
    os.chown(path, os.getuid(), os.getgid())
    os.chmod(path, 0o666)
    refused(tool.run("trace", "--plan", path), TARGET, "others may write")


# ---- what the command line says besides ----


def test_options_that_contradict_are_refused(hb, put, target):
    path = put(plan_of(target.pid, duration="1s", syscalls="blocking", python="stacks", calls=["*:work"]))
    hb.run("plan", "approve", path, "--yes", code=OK)
    for options in (["--syscalls", "all"], ["-d", "5s"], ["-p", "1"], ["-p", f"{target.pid},1"], ["--name", "*"],
                    ["--calls", "*:other"], ["-F", "4999"], ["--no-children"], ["--field", "*:f self.x"], ["--timed", "launch"]):
        result = hb.run("trace", "--plan", path, *options)
        refused(result, USAGE, "--")
        assert "contradicts" in result.err or "is not in" in result.err, result
    hb.run("trace", "--plan", path, "-p", target.pid, "-d", "1000ms", "--syscalls", "blocking", "--calls", "*:work", "-o", "same.hbw",
           "--max-size", "100MiB", code=OK)
    refused(hb.run("trace", "-p", target.pid, "--signers", "x"), USAGE, "--plan")


def test_another_process_is_not_the_target(tool, put, start):
    """Gone, or another one under its number, or of another boot."""
    first, other = (start([sys.executable, "-c", WORK], ready="ready") for _ in range(2))
    gone, reused, boot = plan_of(first.pid), plan_of(other.pid), plan_of(other.pid)
    reused["target"][0]["start_ns"] -= 5 * 10**9
    boot["window"]["boot"] = "11111111-2222-3333-4444-555555555555"
    first.kill()
    for plan, word in ((gone, "is gone"), (reused, "is gone"), (boot, "started last")):
        path = put(plan)
        tool.run("plan", "approve", path, "--yes", code=OK)
        refused(tool.run("trace", "--plan", path), TARGET, word)


# ---- bad input ----


@pytest.mark.parametrize("text, word", [
    ("", "empty"), ("{", "cut off"), ("\x00\x01", "no JSON"), ("[]", "list"), ("7", "objects only"), ("{}", "missing"),
    ('{"plan": 2}', "version 2"), ('{"plan": 1, "shell": "rm"}', "no member"), ('{"plan": 1e99}', "whole number"),
    ('{"plan": 18446744073709551616}', "whole number"), ('{"plan": 1, "record": {"output": "/etc/passwd"}}', "nothing that a plan"),
    ('{"plan": 1, "record": {"syscalls": 1}}', "texts only"), ('{"plan": 1, "tool": "\\u001b[2J"}', "control characters"),
    ("[" * 100000, "list"), (" " * 300000, "KiB"), ('{"plan": 1, "plan": 1}', "twice"),
], ids=lambda v: v[:20] if v.isprintable() else "bytes")
def test_a_file_that_is_no_plan_gets_one_sentence(tool, put, text, word):
    path = put(text)
    for args in (("plan", "show", path), ("plan", "approve", path, "--yes"), ("trace", "--plan", path)):
        refused(tool.run(*args), USAGE, "is no plan", word)
    with open(path, encoding="utf-8") as f:
        assert f.read() == text


def test_what_cannot_be_recorded_is_not_approved(tool, put, target):
    for record, word in (({"syscalls": "everything"}, "--syscalls"), ({"duration": "0s"}, "duration"), ({"frequency": "1e9"}, "-F"),
                         ({"duration": "9" * 400 + "s"}, "duration"), ({"calls": ["a b"]}, "blank"),
                         ({"field": ["nothing"]}, ""), ({"timed": "nothing"}, "--timed"), ({"probe": ["api x", "libx.so f nonsense"]}, "nonsense"), ({"python": "off", "calls": ["*:f"]}, "--python off")):
        path = put(plan_of(target.pid, **record))
        before = load(path)
        refused(tool.run("plan", "approve", path, "--yes"), USAGE, "cannot be recorded", word)
        assert load(path) == before


def test_files_and_options(tool, put, target):
    refused(tool.run("plan"), USAGE, "show")
    refused(tool.run("plan", "burn"), USAGE, "burn")
    refused(tool.run("plan", "show"), USAGE, "name the plan")
    refused(tool.run("plan", "show", "a", "b"), USAGE, "too many")
    refused(tool.run("plan", "show", "missing.plan"), FAILED, "No such file")
    refused(tool.run("plan", "show", tool.folder), FAILED, "directory")
    refused(tool.run("plan", "show", "/dev/zero"), FAILED, "no regular file")
    assert "approve" in tool.run("plan", "--help", code=OK).out
    path = put(plan_of(target.pid, calls=["*:it's"], frequency="997"))
    shown = tool.run("plan", "show", path, code=OK).out
    assert "--frequency 997" in shown and r"'*:it'\''s'" in shown and str(target.pid) in shown
    assert json.loads(tool.run("plan", "show", "--json", path, code=OK).out) == load(path)
