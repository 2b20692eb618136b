# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where an engine's Python is. The installed venvs (scripts/engines-setup) are shared and stay as they are; an engine on the
simulated accelerator gets a private view of one: the same files by hard links, with our libraries laid over NVIDIA's."""
import contextlib
import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys

from lib import paths

BED = os.path.dirname(os.path.abspath(__file__))
LAY = paths.source("tests", "sim", "lay")


class Missing(Exception):
    """Why an engine is not here."""


FOLDERS = {"cpu": "vllm-cpu", "gpu": "vllm-gpu", "sglang": "sglang"}


def installed(name):
    """Folder of an installed venv. Raises Missing with the reason."""
    folder = os.path.join(paths.CACHE, FOLDERS[name])
    if os.path.exists(os.path.join(folder, "ready")):
        return folder
    reason = paths.built("check", f"engines-{name}.reason")
    if os.path.exists(reason):
        with open(reason, encoding="utf-8") as f:
            raise Missing(f.read().strip())
    raise Missing(f"the engine is not installed in {folder}; run scripts/engines-setup {paths.BUILD} {name}")


def model(name, shape):
    """Folder of a made-up model; written the first time."""
    folder = os.path.join(paths.CACHE, "models", shape)
    if not os.path.exists(os.path.join(folder, "config.json")):
        part = f"{folder}.{os.getpid()}"
        subprocess.run([python(os.path.join(installed(name), "venv")), os.path.join(BED, "models.py"), part, shape], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=120)
        with contextlib.suppress(OSError):  # another run was faster
            os.rename(part, folder)
        shutil.rmtree(part, ignore_errors=True)
    return folder


def python(venv):
    return os.path.join(venv, "bin", "python")


@contextlib.contextmanager
def locked(path):
    with open(path, "w", encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


class View:
    """A laid view of a venv, one for each build folder, kept between runs: making it takes seconds, and vLLM's and Triton's compiled
    code lies in it."""

    def __init__(self, name="gpu"):
        shared = os.path.join(installed(name), "venv")
        if not os.path.exists(paths.built("sim", "libcuda.so.1")):
            raise Missing(f"{paths.built('sim')} is not built; run make sim")
        key = hashlib.sha256(paths.BUILD.encode()).hexdigest()[:10]
        self.folder = os.path.join(paths.CACHE, f"laid-{key}-{name}")
        self.venv, self.home = os.path.join(self.folder, "venv"), os.path.join(self.folder, "home")
        os.makedirs(self.home, exist_ok=True)
        with open(os.path.join(self.folder, "build"), "w", encoding="utf-8") as f:
            f.write(paths.BUILD)  # scripts/engines-setup removes views whose build folder is gone
        with locked(os.path.join(self.folder, "lock")):
            self._link(shared)
            self._lay()

    def _link(self, shared):
        made = os.path.join(self.folder, "of")
        stamp = f"{shared} {os.stat(os.path.join(shared, '..', 'ready')).st_mtime_ns}"
        if os.path.exists(made):
            with open(made, encoding="utf-8") as f:
                if f.read() == stamp:
                    return
            os.unlink(made)
        shutil.rmtree(self.venv, ignore_errors=True)
        subprocess.run(["cp", "-al", shared, self.venv], check=True, timeout=300)
        with open(made, "w", encoding="utf-8") as f:
            f.write(stamp)

    def _lay(self):
        env = dict(os.environ, HB_BUILD=paths.BUILD)
        done = subprocess.run([LAY, self.venv], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{LAY} failed: {(done.stderr or done.stdout).strip()[-2000:]}")
        self._env = dict(word.split("=", 1) for word in shlex.split(done.stdout) if "=" in word)

    def environment(self):
        return {**self._env, "HOME": self.home, "XDG_CACHE_HOME": os.path.join(self.home, ".cache"),
                "VLLM_CACHE_ROOT": os.path.join(self.home, "vllm"), "TRITON_CACHE_DIR": os.path.join(self.home, "triton"),
                "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.home, "inductor")}

    def forget_compiled(self):
        """The next engine compiles everything again."""
        with locked(os.path.join(self.folder, "lock")):
            shutil.rmtree(self.home, ignore_errors=True)
            os.makedirs(self.home)


class Plain:
    """The CPU venv: nothing is laid, nothing is changed."""

    def __init__(self, name="cpu"):
        self.venv = os.path.join(installed(name), "venv")

    @staticmethod
    def environment():
        return {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "0-%d" % (min(os.cpu_count() or 1, 2) - 1)}


def main():
    """Lays the view and prints its folder: for use by hand."""
    print(View().venv)


if __name__ == "__main__":
    sys.exit(main())
