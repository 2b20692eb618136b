# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python programs that others wrote, as Debian ships them: servers under load. Their sleeps and samples have whole Python stacks,
and the handlers of requests are in them."""
import os
import socket
import threading
import urllib.request

import pytest

from lib.processes import wait_for
from lib.pythons import Other
from test_python import python_frames

APP = '''
import time

def work(n):
    return sum(i * i for i in range(n))

def handle_request():
    time.sleep(0.004)
    return b"%d" % work(20000)

def wsgi(environ, start_response):
    body = handle_request()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]

async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body = handle_request()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
'''
SERVERS = {
    "gunicorn-sync": ["gunicorn", "--workers", "2", "--bind", "127.0.0.1:PORT", "app:wsgi"],
    "gunicorn-threads": ["gunicorn", "--workers", "1", "--threads", "4", "--bind", "127.0.0.1:PORT", "app:wsgi"],
    "uvicorn": ["uvicorn", "--port", "PORT", "--log-level", "warning", "app:asgi"],
}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as r:
            return r.status == 200
    except OSError:
        return False


class Load:
    """Clients that ask one request after the other."""

    def __init__(self, port, clients=3):
        self._over, self.answered = False, 0
        self._threads = [threading.Thread(target=self._ask, args=(port,)) for _ in range(clients)]
        for t in self._threads:
            t.start()

    def _ask(self, port):
        while not self._over:
            self.answered += answers(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over = True
        for t in self._threads:
            t.join(30)


@pytest.fixture(params=SERVERS)
def server(request, start):
    other = Other("servers")
    with open(os.path.join(other.folder, "app.py"), "w", encoding="utf-8") as f:
        f.write(APP)
    port = free_port()
    inside = other.folder[len(other.root):]
    arguments = [a.replace("PORT", str(port)) for a in SERVERS[request.param]]
    target = start(other.command("-c", f"import sys, runpy; sys.path.insert(0, {inside!r}); sys.argv = {arguments!r}; "
                                       f"runpy.run_module({arguments[0]!r}, run_name='__main__')"))
    wait_for(lambda: answers(port), timeout=60, what=target.output() or "the server's first answer")
    yield target, port
    target.stop()
    other.close()


def share_whole(window, records):
    """Of records that have a Python stack or should have one: those that are whole."""
    whole = [r for r in records if python_frames(r) and "stack_state" not in r]
    return len(whole) / max(1, len(records))


def test_servers_under_load(hb, server):
    target, port = server
    with Load(port) as load:
        path, _ = hb.trace("-p", target.pid, duration="3s")
    assert load.answered > 20 and target.running()
    window = hb.window(path)
    naps = [r for r in window.of("offcpu") if r.get("syscall") == "clock_nanosleep" and r["dur"] > 2_000_000 and not r.get("before")]
    assert len(naps) > 20
    assert all("handle_request" == python_frames(r)[-1][0] for r in naps), naps[0]
    assert share_whole(window, naps) >= 0.98
    samples = [r for r in window.of("sample") if any(f[0] == "work" for f in python_frames(r))]
    assert samples and all("handle_request" in [f[0] for f in python_frames(r)] for r in samples)
    assert {python_frames(r)[0][0] for r in samples} <= {"<module>", "Thread._bootstrap"}
    # Waits of the server's own: select, epoll, accept or a lock, each with the function that waits.
    waits = [r for r in window.of("offcpu") if r["state"] == "S" and r["dur"] > 1_000_000 and not r.get("before")]
    assert share_whole(window, waits) >= 0.98, [r for r in waits if not python_frames(r)][:3]
    assert_holders(window)
    assert window.loss["python_unresolved"] == window.loss["python_unreadable"] == 0


def assert_holders(window):
    """Those that hold the GIL run while their stacks are read: what is read is one of their stacks all the same."""
    waits = [r for r in window.of("py.gil") if r.get("holder_tid") and not r.get("handover")]
    stacks = [[f["f"] for f in r["holder_stack"] if f["lang"] == "py"] for r in waits if r.get("holder_stack")]
    assert len(stacks) >= 0.95 * len(waits), (len(stacks), len(waits))
    assert {s[0] for s in stacks} <= {"<module>", "Thread._bootstrap"}
