# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where things are. HB_BUILD names the build folder, HB_CACHE what is kept between runs (engines, wheels)."""
import os

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
BUILD = os.path.realpath(os.environ.get("HB_BUILD") or os.path.join(ROOT, "build"))
CACHE = os.environ.get("HB_CACHE") or "/var/cache/herschel-bpf-tests"
TOOL = os.environ.get("HB_TOOL") or os.path.join(BUILD, "herschel-bpf")


def built(*parts):
    """A file of the build folder, e.g. built("workloads", "calls")."""
    return os.path.join(BUILD, *parts)


def source(*parts):
    """A file of the checkout, e.g. source("tests", "workloads", "mini_llm")."""
    return os.path.join(ROOT, *parts)
