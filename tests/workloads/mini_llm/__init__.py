# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small multi-process LLM engine on the simulated accelerator: what a tracer meets in production, for tests and demo.

front end (HTTP, asyncio) -- unix socket -- engine (scheduler) -- shared memory and semaphores -- workers (one per device)
"""
