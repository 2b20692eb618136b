# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scenarios on unmodified engines, as in table.py."""
from . import cgroup, checks as own, checks_served as checks
from .serving import PLUGINS, RANKS, Served

GRAPHS = ("vllm-graphs",)
GROW = {"prompt": "20-30", "tokens": "150-250"}  # requests that are let in with 6 KV blocks and need 20 in the end

SERVED = (
    Served(
        "vllm_eager", "vLLM was started with --enforce-eager: steps of small kernels are launched one by one",
        patterns=("P08",), program=(*GRAPHS, "--hf-overrides", '{"num_hidden_layers": 32}'), cause=("--enforce-eager",),
        costs="kernel *FlashAttnFwdSm90* 30000\n", seconds=3,
        shows=checks.eager, healthy=checks.graphs, amount=checks.eager_exposed, blamed=("dispatch",)),
    Served(
        "vllm_small_batch", "vLLM may run two requests at once (--max-num-seqs) while six ask and memory is free",
        patterns=("P38",), program=GRAPHS, cause=("--max-num-seqs", "2"), clients=6, trace=checks.FIELDS,
        shows=checks.small_batch, healthy=checks.batch_for_all, amount=checks.waiting_time, judge="delay_ns"),
    Served(
        "vllm_preemption", "vLLM has too few KV blocks (--num-gpu-blocks-override) for the requests that it lets in",
        patterns=("P39",), program=GRAPHS, cause=("--num-gpu-blocks-override", "80"), clients=8, load=GROW,
        trace=checks.FIELDS,
        shows=checks.preemption, healthy=checks.no_preemption, amount=checks.preemptions, judge="count"),
    Served(
        "vllm_quota", "vLLM's engine process may have 12 % of a CPU, and needs more",
        patterns=("P29",), program=GRAPHS, fair=("cause",), within=checks.quota, impossible=cgroup.why_not,
        shows=checks.throttled, healthy=checks.not_throttled, amount=checks.starved, blamed=("dispatch",)),
    Served(
        "vllm_kv", "vLLM's scheduler asks a KV service for each new request and waits; a thread that evicts blocks has its lock",
        patterns=("P14", "P13"), program=GRAPHS, plugins=PLUGINS, switch="kv",
        shows=checks.kv, healthy=checks.kv_aside, blamed=("kv-server", "kv-evictor")),
    Served(
        "vllm_journal", "a logits processor of vLLM waits in every 8th step until its journal is on the disk, 30 ms",
        patterns=("P27",), program=GRAPHS, plugins=PLUGINS, switch="journal",
        shows=own.fsync, healthy=own.fsync_aside, amount=own.fsync_exposed, blamed=("dispatch",)),
    Served(
        "vllm_bill", "a middleware of vLLM counts the tokens of each prompt on the event loop, 150 ms each",
        patterns=("P19",), program=GRAPHS, plugins=PLUGINS, switch="bill",
        shows=checks.bill, healthy=checks.no_bill, blamed=("event-loop",)),
    Served(
        "vllm_slow_rank", "a logits processor takes 20 ms of one of vLLM's two tensor-parallel workers in each step",
        patterns=("P33", "P15"), program=("vllm-tp2",), plugins=RANKS, switch="uneven", env={"HB_PAUSE_US": "100"}, busy=True,
        shows=checks.slow_rank, healthy=checks.even_ranks, amount=own.slow_rank_exposed, blamed=("rank-1",)),
)
