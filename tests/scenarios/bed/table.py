# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The scenarios: what is planted, how, what the records of it are, and its healthy twin."""
from . import checks
from .scenario import Scenario

SCENARIOS = (
    Scenario(
        "kv_service", "every 10th step waits 350 ms for a KV service, whose lock a thread holds that evicts blocks",
        patterns=("P13", "P14"), program=("kv_service.py",), twin=("--queued",), costs="kernel layer_1ms 1000000\n",
        shows=checks.kv_service, healthy=checks.kv_service_queued, blamed=("kv-server", "kv-evictor")),
)
