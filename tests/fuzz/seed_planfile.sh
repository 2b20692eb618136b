#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Plans with every member there is.
cat >"$1/whole" <<'END'
{"plan":1,"tool":"herschel-bpf","window":{"id":"w","file":"a.hbw","host":"box","boot":"b","start_ns":1,"end_ns":2},
"target":[{"pid":42,"start_ns":7,"name":"engine"},{"pid":43,"start_ns":8}],
"record":{"duration":"30s","syscalls":"all","python":"calls","calls":["a.py:F.g","*:h"],"field":["*:E.step self.x:len"],
"timed":"launch,graph","frequency":"997","probe":["libx.so f other library entry"]},
"reasons":[{"pattern":"P13","title":"t","confidence":"low","why":"w","records":"r","settle":"s"}],
"cost":[{"what":"a","known":true,"rate_per_s":1,"price_ns":2,"ns_per_s":3,"basis":"b"},{"what":"c","known":false}],
"approval":{"plan":"00","by":"me","uid":1,"host":"h","at":"2026-11-30T09:00:00Z","method":"ssh","signature":["-","x"]}}
END
cat >"$1/small" <<'END'
{"plan":1,"window":{"id":"w","boot":"b"},"target":[{"pid":42,"start_ns":7}],"record":{"python":"off"},"approval":{"method":"yes"}}
END
