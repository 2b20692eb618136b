#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Seeds of fuzz_roofline: peaks (0), a model (1), an operator's texts (2), steps (3).
out=$1
{ printf 0; cat user/analysis/model/peaks.tbl; } > "$out/peaks"
{ printf '0device "A B"|C* peak bf16=1.5 hbm=2 sms=10 # x\ndevice C ceiling fp8=3\n'; } > "$out/peaks-short"
printf '%s' '1{"model_type":"gpt_oss","hidden_size":2880,"intermediate_size":2880,"num_hidden_layers":2,"num_attention_heads":64,
"num_key_value_heads":8,"head_dim":64,"vocab_size":201088,"num_local_experts":128,"num_experts_per_tok":4,"sliding_window":128,
"layer_types":["sliding_attention","full_attention"],"torch_dtype":"bfloat16","quantization_config":{"quant_method":"mxfp4"}}' > "$out/model"
printf '%s' '1{"text_config":{"hidden_size":8,"intermediate_size":8,"num_hidden_layers":4,"num_attention_heads":1,"kv_lora_rank":4,
"linear_num_value_heads":2,"full_attention_interval":4,"mamba_n_heads":2},"dtype":"float16","quantization_config":
{"quant_method":"fp8","weight_block_size":[128,128],"bits":4}}' > "$out/model-inner"
printf '2[[512],[141,512],[512,512],[],[]]\0["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar"]\0["","","","1","True"]' > "$out/addmm"
printf '2[[2,4,8,64],[2,4,8,64],[2,4,8,64],[],[],[]]\0["c10::Half","c10::Half","c10::Half"]\0["","","","0.","True","False"]' > "$out/sdpa"
printf '2[]\0\0{"collective":"allreduce","dtype":"Float","in":8,"out":8,"ranks":2}' > "$out/comms"
printf '3execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)' > "$out/execute"
printf '3step[EXTEND bs=2 toks=1024]' > "$out/step"
