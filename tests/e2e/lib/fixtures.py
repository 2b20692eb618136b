# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the end-to-end tests; conftest.py files import them from here."""
import os
import signal
import subprocess

import pytest

from . import kernel, oracles, paths
from .engine import Engine
from .processes import Process
from .tool import Tool

DEADLINE = 300  # seconds for one test, unless it has a mark: @pytest.mark.deadline(600)


def configure(config):
    """For pytest_configure of a conftest.py."""
    config.addinivalue_line("markers", f"deadline(seconds): time limit of one test (default {DEADLINE})")
    config.addinivalue_line("markers", "beside: may run while another test does: it measures no time, counts nothing of the whole "
                            "machine and leaves no CPU without time for others")
    config.addinivalue_line("markers", "alone: of a file that is marked beside, the test that is not")


@pytest.fixture(autouse=True)
def _deadline(request):
    """A test that hangs fails by itself, with a traceback of where it hung."""
    mark = request.node.get_closest_marker("deadline")
    seconds = mark.args[0] if mark else DEADLINE

    def late(*_):
        raise TimeoutError(f"the test did not end within {seconds} s")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture
def tool(tmp_path):
    """The program, run in a folder of this test: tool.run("report", file, code=0)."""
    if not os.path.exists(paths.TOOL):
        pytest.fail(f"{paths.TOOL} is not built; run make")
    t = Tool(tmp_path)
    yield t
    t.close()


@pytest.fixture(scope="session")
def _bpf_refused():
    return kernel.why_not()


@pytest.fixture
def hb(tool, _bpf_refused):
    """The program with the right to trace. After the test nothing of it may be left in the kernel."""
    if _bpf_refused:
        pytest.skip(_bpf_refused)
    before = kernel.Snapshot()
    yield tool
    tool.close()
    left = before.wait_clean()
    assert not left, "left in the kernel:\n" + "\n".join(left)


@pytest.fixture
def start():
    """Starts a process that is killed when the test ends: start(["sleep", "60"], ready=...)."""
    started = []

    def begin(command, **more):
        p = Process(command, **more)
        started.append(p)
        return p

    yield begin
    for p in reversed(started):
        p.kill()


@pytest.fixture
def workload(start):
    """Starts a program of build/workloads; skips with the reason when it could not be built here."""

    def begin(name, *args, **more):
        path = paths.built("workloads", name)
        if not os.path.exists(path):
            pytest.skip(f"{path} is not built")
        return start([path, *args], **more)

    return begin


@pytest.fixture
def engine(start, tmp_path):
    """mini_llm on the simulated accelerator: engine(workers=2) -> Engine, ended in order after the test."""
    running = []

    def begin(**options):
        running.append(Engine(start, tmp_path, **options))
        return running[-1]

    yield begin
    for e in running:
        e.stop()


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory):
    """Compiles a small C program for a test: compile_c("name", source, "-lfoo") -> path."""
    folder = tmp_path_factory.mktemp("c")

    def build(name, text, *flags):
        src, out = folder / f"{name}.c", folder / name
        src.write_text(text)
        done = subprocess.run(["gcc", "-O1", "-g", "-o", str(out), str(src), *flags], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        assert done.returncode == 0, done.stdout
        return str(out)

    return build


@pytest.fixture
def oracle():
    """python of a venv with other people's readers: oracle("perfetto"), oracle("hta"); skips where it cannot be had."""

    def find(name):
        try:
            return oracles.python(name)
        except oracles.Missing as e:
            pytest.skip(str(e))

    return find
