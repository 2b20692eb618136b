# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tasks of asyncio with and without names of their own: prints "ready" and then a line for each task, "ROOT NAME", with the address
of its root coroutine. Each of the long ones sleeps over and over in its coroutine, and the short ones of --short follow each other.

    named_tasks.py [--python] [--short]    --python: the class Task that is written in Python"""
import asyncio
import asyncio.tasks
import sys
import time

LONG_NAME = "größer " + "x" * 100


async def request():
    task = asyncio.current_task()
    print(hex(id(task.get_coro())), task.get_name(), flush=True)
    while True:
        time.sleep(0.003)
        await asyncio.sleep(0.01)


async def short(n):
    for _ in range(40):
        time.sleep(0.003)
        await asyncio.sleep(0.002)


async def main():
    loop = asyncio.get_running_loop()
    if "--python" in sys.argv:
        loop.set_task_factory(lambda loop, coro, **more: asyncio.tasks._PyTask(
            coro, loop=loop, **more))
    tasks = [asyncio.Task(request(), name="decode of request 7") if "--python" not in sys.argv else
             asyncio.tasks._PyTask(request(), name="decode of request 7")]
    tasks.append(loop.create_task(request()))
    tasks.append(loop.create_task(request()))
    tasks[-1].set_name(LONG_NAME)
    for n in range(4):
        tasks.append(loop.create_task(request()))
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    n = 0
    while "--short" in sys.argv:
        n += 1
        task = loop.create_task(short(n))
        task.set_name("short %d" % n)
        await task
    await asyncio.gather(*tasks)


asyncio.run(main())
