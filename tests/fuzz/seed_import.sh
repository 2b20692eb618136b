#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Small traces of all sorts into the folder given: what the fuzzer of imports starts from. The byte before is for memory.
set -eu
out=$1

row() # CAT NAME PID TID TS DUR ARGS
{
	printf '{"ph":"X","cat":"%s","name":"%s","pid":%s,"tid":%s,"ts":%s,"dur":%s,"args":{%s}}' "$@"
}

rows=$(
	row cpu_op aten::mm 7 7 10.5 20 '"External id":3,"Sequence number":1,"Input Dims":[[2,3],[]],"Input type":["float",""]'
	printf ,
	row cuda_runtime cudaLaunchKernel 7 7 12.001 5 '"correlation":9,"cbid":211'
	printf ,
	row cuda_driver cuLaunchKernel 7 '"8"' 13 1 '"correlation":10'
	printf ,
	row kernel 'void k<int>(float*)' 0 7 15 9.25 '"device":0,"stream":7,"correlation":9,"grid":[1,2,3],"block":[32,1,1],"queued":0'
	printf ,
	row gpu_memcpy 'Memcpy HtoD (Pageable -> Device)' 0 7 30 2 '"stream":7,"bytes":64,"correlation":10'
	printf ,
	row cuda_sync 'Event Sync' 0 -1 33 1 '"stream":-1,"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":9'
	printf ,
	row python_function 'a/b.py(7): f' 7 7 9 40 '"Python id":1'
	printf ,
	row gpu_user_annotation step 0 7 15 20 ''
)
meta='{"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"python"}},{"ph":"M","name":"thread_name","pid":7,"tid":8,"args":{"name":"thread 8 (w)"}}'
flow='{"ph":"s","id":9,"pid":7,"tid":7,"ts":12,"cat":"ac2g","name":"ac2g"},{"ph":"B","name":"b","pid":1,"tid":1,"ts":3},{"ph":"E","pid":1,"tid":1,"ts":4}'
head='"schemaVersion":1,"baseTimeNanoseconds":1700000000000000000,"deviceProperties":[{"id":0,"name":"H100","numSms":132}],"distributedInfo":{"rank":1,"world_size":2}'

printf '\1{%s,"traceEvents":[%s,%s,%s],"traceName":"x"}' "$head" "$meta" "$rows" "$flow" >"$out/whole"
printf '\377{%s,"traceEvents":[%s,%s' "$head" "$rows" "${flow%?????}" >"$out/cut"
printf '\5[%s,\n%s\n,' "$rows" "$meta" >"$out/list"
printf '\2{"traceEvents":[%s,%s],"x":NaN}' "${rows//:7,/:NaN,}" "${flow//\"B\"/\"B}" >"$out/broken"
