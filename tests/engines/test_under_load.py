# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every engine under load for a minute: all is answered, and the simulated libraries lack nothing that matters."""
import os

import pytest
from bed import engines, expect, venv
from lib.exact import truth

SECONDS = int(os.environ.get("HB_ENGINES_SECONDS") or 60)


def here():
    """SGLang takes 11 GB and minutes of nvcc: it is tested where somebody installed it."""
    return [n for n in engines.NAMES if n != "sglang" or os.path.exists(os.path.join(venv.paths.CACHE, "sglang", "ready"))]


@pytest.mark.parametrize("name", here())
@pytest.mark.deadline(900)
def test_answers_everything(stage, name):
    e = stage.get(name)
    before = len(e.step_rows())
    answers = e.load(seconds=SECONDS).wait(SECONDS + 120)
    assert answers.ok, f"{answers}\n{e.log()[-3000:]}"
    steps = e.step_rows()[before:]
    assert steps or name == "sglang", "the engine left no rows of its steps"
    memory = {p: expect.rss(p) >> 20 for p in e.accelerated()}
    print(f"{name}: up in {e.startup:.0f} s, {answers.summary}, {len(steps)} steps, MiB resident {memory}")
    if not e.simulated:
        return
    # A step of the loops makes tokens by itself; a server's steps made all that its clients got.
    if name.startswith("vllm"):
        assert sum(s["generated_tokens"] for s in steps) >= answers.summary["tokens"]
    gaps = expect.gaps(truth.read(e.truth))
    assert not gaps, f"stubs were called: {gaps}"
