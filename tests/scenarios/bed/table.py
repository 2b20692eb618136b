# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scenarios: what is planted, how, what the records of it are, and its healthy twin."""
from . import cgroup, checks
from .scenario import Scenario
from .served import SERVED

SCENARIOS = (
    Scenario(
        "kv_service", "every 10th step waits 350 ms for a KV service, whose lock a thread holds that evicts blocks",
        patterns=("P13", "P14"), program=("kv_service.py",), twin=("--queued",),
        shows=checks.kv_service, healthy=checks.kv_service_queued, blamed=("kv-server", "kv-evictor"),
        chain=("dispatch", "unix", "kv-server", "futex", "kv-evictor")),
    Scenario(
        "gil", "a thread that renders metrics keeps the GIL for 8 ms at a time",
        patterns=("P21",), program=("gil.py",), twin=("--release",),
        shows=checks.gil, healthy=checks.gil_released, amount=checks.gil_exposed, blamed=("metrics",)),
    Scenario(
        "convoy", "eight native threads take turns at one lock",
        patterns=("P22",), program=("convoy",), twin=("--sharded",),
        shows=checks.convoy, healthy=checks.convoy_sharded, blamed=("worker-",)),
    Scenario(
        "pool", "a thread pool parks and wakes for each task of 1 us",
        patterns=("P23",), program=("pool",), twin=("--batch",),
        shows=checks.pool, healthy=checks.pool_batched, blamed=("pool-",)),
    Scenario(
        "exceptions", "a cache says no by raising, 1,000 times a step",
        patterns=("P25",), program=("exceptions.py",), twin=("--ask",),
        shows=checks.exceptions, healthy=checks.exceptions_asked, amount=checks.exceptions_exposed, blamed=("dispatch",)),
    Scenario(
        "readback", "a number is read back from the device before each part of a step",
        patterns=("P02",), program=("readback.py",), twin=("--later",),
        trace=("--py-hook", "eval_frame", "--calls", "*:EngineCore.step"),
        shows=checks.readback, healthy=checks.readback_later, blamed=("dispatch",)),
    Scenario(
        "pageable", "an asynchronous copy to memory that is not pinned returns when it is done",
        patterns=("P03",), program=("pageable.py",), twin=("--pinned",), costs="pageable_bps=64000000\n",
        shows=checks.pageable, healthy=checks.pageable_pinned, amount=checks.without_kernels, blamed=("dispatch",)),
    Scenario(
        "storm", "steps of 600 tiny kernels are launched one by one",
        patterns=("P08",), program=("graphs.py",), seconds=2, twin=("--graph",),
        shows=checks.storm, healthy=checks.storm_graphs, blamed=("dispatch",)),
    Scenario(
        "graph_miss", "every 4th step has a batch for which no graph was captured",
        patterns=("P09",), program=("graphs.py",), seconds=2, cause=("--miss", "4"), twin=("--graph",),
        shows=checks.graph_miss, healthy=checks.storm_graphs),
    Scenario(
        "fsync", "the thread that launches waits for a journal to be on the disk",
        patterns=("P27",), program=("fsync.py",), twin=("--aside",),
        shows=checks.fsync, healthy=checks.fsync_aside, amount=checks.fsync_exposed,
        blamed=("dispatch",)),
    Scenario(
        "run_queue", "three other processes want the CPU of the thread that launches",
        patterns=("P30",), program=("busy",), cause=("--others", "3", "0"), fair=("cause", "twin"), twin=("--apart", "3", "0"),
        shows=checks.run_queue, healthy=checks.run_queue_apart, blamed=("dispatch",), amount=checks.delay_exposed),
    Scenario(
        "throttled", "a pool of 2 threads uses up the quota of the group before the thread that launches gets any",
        patterns=("P29",), program=("busy",), cause=("--pool", "2"), fair=("cause",), twin=("--pool", "0"),
        shows=checks.throttled, healthy=checks.not_throttled, amount=checks.delay_exposed,
        around=cgroup.quota, impossible=cgroup.why_not),
    Scenario(
        "tokenizer", "prompts are tokenized on the event loop of the front end, 60 ms each",
        patterns=("P19",), program=("tokenizer.py",), twin=("--short",),
        shows=checks.tokenizer, healthy=checks.tokenizer_short, blamed=("event-loop",)),
    Scenario(
        "collector", "garbage collections of one of two ranks",
        patterns=("P26",), program=("ranks.py",), cause=("--gc",), twin=("--frozen",),
        shows=checks.collector, healthy=checks.collector_frozen, amount=checks.collector_exposed, blamed=("rank-1",)),
    Scenario(
        "slow_rank", "one of two ranks needs 6 ms more in each step than the other",
        patterns=("P33", "P15"), program=("ranks.py",), cause=("--slow",),
        shows=checks.slow_rank, healthy=checks.even_ranks, amount=checks.slow_rank_exposed, blamed=("rank-1",)),
    # The device has work all the time in the next two, as with both on vLLM: no time is exposed, it is requests that wait.
    Scenario(
        "preemption", "KV blocks run out, and requests begin anew again and again",
        patterns=("P39",), program=("scheduler.py",), cause=("--blocks", "300"), trace=checks.FIELDS,
        shows=checks.preemption, healthy=checks.no_preemption, judge="count",
        amount=checks.preemptions),
    Scenario(
        "small_batch", "four requests may run at once while twenty wait and memory is free",
        patterns=("P38",), program=("scheduler.py",), cause=("--limit", "4"),
        trace=checks.FIELDS,
        shows=checks.small_batch, healthy=checks.batch_for_all, amount=checks.waiting_time, judge="delay_ns"),
    *SERVED,
)
