# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's Chromium without a screen, told what to do over a pipe: its DevTools protocol, with no library between."""
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

from . import paths


class Missing(Exception):
    """There is no browser here, and the reason."""


KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Escape": 27, "Tab": 9, "Home": 36}


def program():
    """Command line of a Chromium: HB_CHROMIUM, the system's own, or Debian's, fetched into a root of its own."""
    named = os.environ.get("HB_CHROMIUM")
    for name in [named] if named else ["chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"]:
        found = shutil.which(name)
        if found:
            return [found], ""
    if named:
        raise Missing(f"HB_CHROMIUM names {named}, which is not there")
    if os.geteuid() != 0:
        raise Missing("no Chromium here; as root the tests fetch Debian's, or install chromium")
    try:
        done = subprocess.run([paths.source("scripts", "pythons"), "chromium"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        raise Missing("Debian's Chromium could not be fetched within 900 s; run scripts/pythons chromium") from None
    words = done.stdout.split()
    if len(words) != 3 or words[1] == "skipped:":
        raise Missing((done.stdout + done.stderr).strip() or "Debian's Chromium could not be fetched")
    # In mounts of its own, which end with it: it wants /proc and /dev.
    inside = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    return ["unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", inside, words[1], words[2]], words[1]


class Browser:
    """One page in a browser of its own; ended by close()."""

    def __init__(self, folder):
        command, root = program()
        self.folder, self.root = os.path.realpath(folder), root
        profile = os.path.join(self.folder, "chromium")
        if root:
            profile = "/tmp/hb-chromium-" + os.path.basename(self.folder)
            os.makedirs(root + profile, exist_ok=True)
        self.profile = root + profile
        # It reads orders from descriptor 3 and answers on 4.
        orders, self._out = os.pipe()
        self._in, answers = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (orders, answers)]
        for fd in (orders, answers):
            os.close(fd)
        shell = 'exec 3<&%d 4>&%d %d<&- %d>&-; exec "$@"' % (*high, *high)
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", shell, "browser", *command, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
             "--hide-scrollbars", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=high, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(os.environ, HOME=profile, XDG_CONFIG_HOME=profile, XDG_CACHE_HOME=profile))
        for fd in high:
            os.close(fd)
        self._rest, self._number, self.events = b"", 0, []
        target = next(t for t in self.order("Target.getTargets", session=None)["targetInfos"] if t["type"] == "page")
        self.session = self.order("Target.attachToTarget", session=None, targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.order(f"{domain}.enable")

    # ---- the wire ----

    def _read(self, deadline):
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise Missing("the browser ended: " + str(self.process.poll()))
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def order(self, method, session="page", timeout=30, **params):
        """Its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = self.session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            got = self._read(deadline)
            if got.get("id") == self._number:
                assert "error" not in got, got["error"]
                return got["result"]
            self.events.append(got)

    # ---- what tests ask ----

    def open(self, path, width=1200, height=800, dark=False):
        """Loads a file and waits until its script has drawn it."""
        if self.root:
            inside = os.path.join(self.profile, "page.html")
            shutil.copy(path, inside)
            path = inside[len(self.root):]
        self.events = []
        self.size(width, height)
        self.order("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.order("Page.navigate", url="file://" + path)
        self.wait("location.protocol === 'file:' && document.readyState === 'complete'")

    def size(self, width, height):
        self.order("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def eval(self, expression):
        """Value of a JavaScript expression in the page."""
        got = self.order("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in got, got["exceptionDetails"]
        return got["result"].get("value")

    def wait(self, expression, timeout=30):
        deadline = time.monotonic() + timeout
        while not self.eval(expression):
            assert time.monotonic() < deadline, f"never true in the page: {expression}; {self.complaints()}"
            time.sleep(0.05)

    def frame(self):
        """Waits until what was asked for has been drawn."""
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")

    def key(self, key, times=1):
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        for _ in range(times):
            code = KEYS.get(key, ord(key[0].upper()))
            self.order("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", key=key, code=key, windowsVirtualKeyCode=code, text=text)
            self.order("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)
        self.frame()

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.order("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.frame()

    def picture(self, path):
        """A PNG of what is to be seen."""
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.order("Page.captureScreenshot")["data"]))

    def complaints(self):
        """Errors and warnings of console, log and policy."""
        found = []
        for e in self.events:
            p = e.get("params", {})
            if e.get("method") == "Runtime.exceptionThrown":
                found.append(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"])
            elif e.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append(str(p["args"]))
            elif e.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                found.append(p["entry"]["text"])
        return found

    def requests(self):
        """Addresses that were asked for, apart from the page's own and what it carries in itself."""
        urls = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [u for u in urls if not u.startswith(("file:///", "data:"))] + [u for u in urls if u.startswith("file:///")][1:]

    def close(self):
        self.process.kill()
        self.process.wait()
        for fd in (self._in, self._out):
            os.close(fd)
        if self.root:
            shutil.rmtree(self.profile, ignore_errors=True)
