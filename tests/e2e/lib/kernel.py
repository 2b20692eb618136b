# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel holds of ours: BPF programs, links and uprobe events. After a run there must be nothing."""
import json
import os
import subprocess
import time

from . import paths


def why_not():
    """Why BPF cannot be used here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    try:
        done = subprocess.run(["bpftool", "-j", "prog", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    except FileNotFoundError:
        return "bpftool is not installed (scripts/setup)"
    if done.returncode != 0:
        return f"the kernel refuses BPF here: {(done.stderr or done.stdout).decode(errors='replace').strip()[:200]}"
    return None


def _list(kind):
    done = subprocess.run(["bpftool", "-j", kind, "list"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
    try:
        entries = json.loads(done.stdout or b"[]")
    except json.JSONDecodeError:
        return []
    # One that vanishes while it is listed leaves an entry with an error and no id.
    return [e for e in entries if isinstance(e, dict) and "id" in e] if isinstance(entries, list) else []


def holders():
    """{program id: pids that have a descriptor of it or of a link to it}. bpftool knows that on some kernels only."""
    held = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for fd in os.listdir(f"/proc/{pid}/fd"):
                if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("anon_inode:bpf"):
                    continue
                with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii", errors="replace") as f:
                    for line in f:
                        if line.startswith("prog_id:"):
                            held.setdefault(int(line.split()[1]), set()).add(int(pid))
        except OSError:
            pass  # it ended while we looked, or is not ours to look at
    return held


def program_names():
    """Names of our programs as the kernel keeps them (15 characters), from the linked BPF object."""
    done = subprocess.run(["readelf", "-sW", paths.built("bpf", "herschel.linked.o")], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=60)
    names = set()
    for line in done.stdout.splitlines():
        f = line.split()
        if len(f) >= 8 and f[3] == "FUNC" and f[4] == "GLOBAL":
            names.add(f[7][:15])
    return names


class Snapshot:
    """Ids present now; `left()` says what of ours is there later that was not there now."""

    def __init__(self):
        self.names = program_names()
        self.programs = {p["id"] for p in _list("prog")}
        self.links = {l["id"] for l in _list("link")}

    @staticmethod
    def _foreign(pids):
        """Held by live processes that are no descendants of this test run: someone else's herschel-bpf."""
        return bool(pids) and not set(_ancestry_reaching(os.getpid(), pids)) & set(pids)

    def _found(self):
        """{(kind, id): sentence} of what is there now, is ours and was not there before."""
        programs = [p for p in _list("prog") if p["id"] not in self.programs and p.get("name") in self.names]
        held = holders() if programs else {}
        mine = [p for p in programs if not self._foreign(held.get(p["id"], ()))]
        ids = {p["id"] for p in mine}
        found = {("prog", p["id"]): f"program {p['id']} {p.get('name')} held by {sorted(held.get(p['id'], ())) or 'nobody'}"
                 for p in mine}
        found.update({("link", l["id"]): f"link {l['id']} {l.get('type')} of program {l.get('prog_id')}"
                      for l in _list("link") if l["id"] not in self.links and l.get("prog_id") in ids})
        found.update({("event", line): f"uprobe event: {line}" for line in uprobe_events()})
        return found

    def left(self):
        """Sentences, one for each thing that is left; empty when clean."""
        return list(self._found().values())

    def wait_clean(self, timeout=60.0):
        """The kernel frees links of a killed process after grace periods, which are long on a busy machine; what is still there
        after `timeout`. Call it when the tool has ended: what appears from then on is another test run's on this machine."""
        end = time.monotonic() + timeout
        found = self._found()
        while found and time.monotonic() < end:
            time.sleep(0.2)
            now = self._found()
            found = {k: v for k, v in found.items() if k in now}
        return list(found.values())


def _ancestry_reaching(top, pids):
    """Those of `pids` that descend from `top` (or are it)."""
    for pid in pids:
        p = pid
        while p > 1:
            if p == top:
                yield pid
                break
            try:
                with open(f"/proc/{p}/stat", encoding="utf-8", errors="replace") as f:
                    p = int(f.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                break


def uprobe_events():
    """Lines of uprobe_events. tracefs is mounted privately for the look, because hosts need not have it mounted."""
    script = "mount -t tracefs none /sys/kernel/tracing 2>/dev/null; cat /sys/kernel/tracing/uprobe_events 2>/dev/null"
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, timeout=60)
    return [line for line in done.stdout.splitlines() if "herschel" in line or "hb_" in line]
