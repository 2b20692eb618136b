# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""generate() of Hugging Face transformers, one request after the other, tokens handed out by a streamer. Writes one row a
request with TTFT and TPOT.   usage: generate.py MODEL LOG   (see loops.py)

generate() computes its stop flag on the device, which computes nothing here: the streamer counts tokens and ends it."""
import random
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.generation.streamers import BaseStreamer

import loops


class Enough(Exception):
    pass


class Counter(BaseStreamer):
    """Takes the prompt, then one token at a time, and says when it is enough."""

    def __init__(self, tokens):
        self.left, self.stamps, self.values = tokens + 1, [], []

    def put(self, value):
        self.left -= 1
        self.stamps.append(time.monotonic_ns())
        self.values.append(value)
        if self.left == 0:
            raise Enough()

    def end(self):
        pass


class Generator:
    def __init__(self, folder):
        config = AutoConfig.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to("cuda").eval()
        self.vocabulary, self.random = config.vocab_size, random.Random(1)

    @torch.inference_mode()
    def step(self):
        begin, r = time.monotonic_ns(), self.random
        tokens = r.randint(16, 32)
        prompt = torch.tensor([[r.randrange(5, self.vocabulary) for _ in range(r.randint(16, 64))]]).to("cuda")
        counter = Counter(tokens)
        try:
            self.model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens + 8, streamer=counter,
                                do_sample=r.random() < 0.25, temperature=0.8, pad_token_id=0)
        except Enough:
            pass
        at = counter.stamps[1:]  # the first is the prompt
        row = {"asked": tokens, "tokens": len(at), "ttft_ns": at[0] - begin, "tpot_ns": (at[-1] - at[0]) // max(len(at) - 1, 1)}
        if row["tokens"] != tokens or not all(0 <= int(v.flatten()[0]) < self.vocabulary for v in counter.values[1:]):
            row["error"] = f"{row['tokens']} tokens of {tokens}, {[v.flatten().tolist() for v in counter.values[1:6]]} .."
        return row


if __name__ == "__main__":
    generator = Generator(sys.argv[1])
    generator.step()
    loops.serve(generator.step, sys.argv[2])
