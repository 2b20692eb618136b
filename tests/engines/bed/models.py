#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes a model's configuration and a byte-level tokenizer; the weights are made up when it is loaded. Needs an engine's
python.   usage: models.py DIR tiny|8b|moe"""
import json
import os
import sys

LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 688,
    "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 512,
    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "torch_dtype": "bfloat16", "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 1,
}
SHAPES = {
    "tiny": {},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256, "max_position_embeddings": 8192,
           "rope_theta": 500000.0, "tie_word_embeddings": False},
    "moe": {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "intermediate_size": 512,
            "moe_intermediate_size": 128, "num_hidden_layers": 4, "head_dim": 64, "tie_word_embeddings": False,
            "num_experts": 16, "num_experts_per_tok": 4, "norm_topk_prob": True, "decoder_sparse_step": 1},
}


def tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=512, special_tokens=["<s>", "</s>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    with open(__file__, encoding="utf-8") as f:
        t.train_from_iterator(f.read().splitlines() * 20, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>")


def write(folder, shape):
    os.makedirs(folder, exist_ok=True)
    tokenizer().save_pretrained(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump({**LLAMA, **SHAPES[shape]}, f, indent=1)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in SHAPES:
        sys.exit(__doc__)
    write(*sys.argv[1:])
