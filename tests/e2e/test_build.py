# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `make` leaves: BPF programs without kernel BTF at build time, the static binary, the installed tree."""
import os
import re
import shutil
import subprocess

import pytest

from lib import kernel, paths

pytestmark = pytest.mark.beside

LOADER_C = r"""
#include <bpf/libbpf.h>
#include <stdio.h>
/* Loads every program of an object, the optional ones too; prints their number. */
int main(int argc, char **argv)
{
	struct bpf_object *o = argc > 1 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *p;
	int n = 0;

	if (!o)
		return 1;
	bpf_object__for_each_program(p, o) {
		bpf_program__set_autoload(p, true);
		n++;
	}
	if (bpf_object__load(o))
		return 2;
	printf("%d\n", n);
	return 0;
}
"""


def make(*args, timeout=280):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "--no-print-directory", *args], cwd=paths.ROOT, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout
    return done.stdout


def load(loader, path):
    done = subprocess.run([loader, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    return int(done.stdout)


def test_programs_built_without_kernel_btf_load(compile_c, tmp_path):
    """vendor/vmlinux/vmlinux.h names every member that the programs read: they compile with it, and load here."""
    out = make("VMLINUX_BTF=/nonexistent", f"B={tmp_path}", f"{tmp_path}/bpf/herschel.linked.o")
    assert "vendor/vmlinux/vmlinux.h" in out
    why = kernel.why_not()
    if why:
        pytest.skip(why)
    loader = compile_c("loader", LOADER_C, "-lbpf", "-lelf", "-lz")
    minimal = load(loader, str(tmp_path / "bpf" / "herschel.linked.o"))
    assert minimal == load(loader, paths.built("bpf", "herschel.linked.o")) > 0


@pytest.fixture(scope="module")
def static_binary():
    make(f"B={paths.BUILD}", "static")
    return paths.built("static", "herschel-bpf")


def test_static_binary_runs_where_there_is_nothing(static_binary, tmp_path):
    """In a root with no C library and no other file."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    shutil.copy(static_binary, tmp_path / "hb")
    done = subprocess.run(["chroot", str(tmp_path), "/hb", "--version"], stdout=subprocess.PIPE, text=True, timeout=60)
    with open(os.path.join(paths.ROOT, "VERSION"), encoding="utf-8") as f:
        assert done.returncode == 0 and done.stdout == f"herschel-bpf {f.read().strip()}\n"


def test_static_binary_traces(hb, static_binary, start):
    target = start(["sh", "-c", "while :; do sleep 0.01; done"])
    hb.path = static_binary
    path, result = hb.trace("-p", target.pid, duration="1s")
    assert hb.window(path).rows, result


def test_install_into_a_folder(tmp_path):
    make(f"B={paths.BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/usr", "install")
    usr = tmp_path / "usr"
    done = subprocess.run([usr / "bin" / "herschel-bpf", "--help"], stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "trace" in done.stdout
    assert (usr / "share/man/man8/herschel-bpf.8").stat().st_size > 1000
    assert (usr / "share/doc/herschel-bpf/README.md").exists()
    # The completion knows the commands because it asks the program.
    script = (f'. {usr}/share/bash-completion/completions/herschel-bpf; COMP_WORDS=({usr}/bin/herschel-bpf tr); '
              'COMP_CWORD=1; _herschel_bpf; echo "${COMPREPLY[@]}"')
    words = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True, timeout=60).stdout.split()
    assert words == ["trace"]
    make(f"B={paths.BUILD}", f"DESTDIR={tmp_path}", "PREFIX=/usr", "uninstall")
    assert not [f for _, _, files in os.walk(usr) for f in files]


def test_every_command_documents_itself():
    """The man page and --help name the same commands, and each command's --help ends with 0."""
    tool = paths.TOOL
    text = subprocess.run([tool, "--help"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
    commands = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and line.strip()]
    assert {"trace", "report", "export"} <= set(commands)
    with open(os.path.join(paths.ROOT, "docs/man/herschel-bpf.8"), encoding="utf-8") as f:
        page = f.read()
    for command in commands:
        assert f".Ss {command}" in page or f".Ic {command}" in page, f"{command} is not in the man page"
        done = subprocess.run([tool, command, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout and not done.stderr, command
        # The library that prints it loses its column after long texts.
        assert not re.search(r"^ {30,}-", done.stdout, re.M), done.stdout
        for option in set(re.findall(r"--([a-z][a-z-]*)", done.stdout)) - {"help", "usage", "version"}:
            assert f"\\-{option}" in page, f"--{option} of {command} is not in the man page"
