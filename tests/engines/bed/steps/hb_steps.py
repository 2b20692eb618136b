# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A stat logger of vLLM, found by its entry point: one JSON line for each step that the engine core reports, into the file
HB_STEPS. at_ns (CLOCK_MONOTONIC) is when the front end got the step's result, not when the step ended."""
import json
import os
import time

from vllm.v1.metrics.loggers import StatLoggerBase


class Steps(StatLoggerBase):
    def __init__(self, vllm_config, engine_index=0):
        path = os.environ.get("HB_STEPS")
        self._file = open(path, "a", buffering=1, encoding="utf-8") if path else None
        self._step = 0

    def record(self, scheduler_stats, iteration_stats, *_, **__):
        if not self._file or iteration_stats is None:
            return
        prompts = iteration_stats.prompt_token_stats
        row = {"step": self._step, "at_ns": time.monotonic_ns(), "prompt_tokens": prompts.total,
               "computed_prompt_tokens": getattr(prompts, "computed", prompts.total),
               "generated_tokens": iteration_stats.num_generation_tokens,
               "first_tokens": len(iteration_stats.time_to_first_tokens_iter),
               "finished": len(iteration_stats.finished_requests), "preempted": iteration_stats.num_preempted_reqs}
        if scheduler_stats is not None:
            row["running"], row["waiting"] = scheduler_stats.num_running_reqs, scheduler_stats.num_waiting_reqs
        self._step += 1
        self._file.write(json.dumps(row) + "\n")

    def log_engine_initialized(self):
        pass
