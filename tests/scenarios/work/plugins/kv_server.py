# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A KV service for the engine that started it.   usage: kv_server.py FD"""
import os
import socket
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import kv_service  # noqa: E402
import planted  # noqa: E402

EVICTION_S = 0.080

planted.live()
kv_service.serve(socket.socket(fileno=int(sys.argv[1])), kv_service.Pool(EVICTION_S))
