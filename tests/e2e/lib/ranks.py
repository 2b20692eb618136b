# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces as PyTorch's profiler writes them, of ranks that step together: a dense kernel, experts, an all-reduce."""
import json
import os

BASE = 1_700_000_000_000_000_000


def write(folder, rank, *, ranks=2, steps=80, late=0, experts=(2000, 2000), transfer=300, ahead=0, base=BASE, pid=77):
    """Times in us. `late`: the last rank launches so much later; `ahead`: its device clock is. Returns the file."""
    rows = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "python"}}]
    last = ranks - 1
    number = 0
    for i in range(steps):
        at = [1000 + i * 8000 + (late if r == last else 0) for r in range(ranks)]
        come = [at[r] + 2200 + experts[r] for r in range(ranks)]
        end = max(come) + transfer
        t = at[rank]
        rows.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "pid": pid, "tid": pid,
                     "ts": t - 100, "dur": 7900})
        work = (("gemm", t + 100, 2000, 7), ("fused_moe_kernel", t + 2150, experts[rank], 7),
                ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", come[rank], end - come[rank], 20))
        rows.append({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": pid, "tid": pid, "ts": t + 38, "dur": 12,
                     "args": {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 33554432,
                              "Out msg nelems": 33554432, "Group size": ranks, "Process Group Name": "tp", "Seq": i}})
        for k, (name, begin, length, stream) in enumerate(work):
            number += 1
            rows.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": pid,
                         "ts": t + k * 20, "dur": 5, "args": {"correlation": number}})
            rows.append({"ph": "X", "cat": "kernel", "name": name, "pid": rank, "tid": stream,
                         "ts": begin + (ahead if rank == last else 0), "dur": length,
                         "args": {"correlation": number, "device": rank, "stream": stream, "context": 1,
                                  "grid": [200, 1, 1], "block": [128, 1, 1]}})
        rows.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": pid, "tid": pid, "ts": t + 70,
                     "dur": end - t - 60, "args": {"correlation": 0}})
    for row in rows:
        if "ts" in row:
            row["ts"] -= (base - BASE) / 1000
    path = os.path.join(folder, f"rank{rank}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
                   "deviceProperties": [{"id": rank, "name": "NVIDIA H200", "numSms": 132}],
                   "traceEvents": rows, "baseTimeNanoseconds": base}, f)
    return path
