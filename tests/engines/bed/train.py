# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A training loop in plain PyTorch: a small decoder, AdamW, gradient clipping, the loss read back every tenth step; batches
come from pinned memory on a stream of their own. Writes one row a step.   usage: train.py LOG   (see loops.py)"""
import itertools
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import loops

VOCAB, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 512, 256, 4, 4, 128, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (y.view(b, t, HEADS, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, WIDTH)
        x = x + self.out(y)
        return x + self.mlp(self.norm2(x))


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Embedding(VOCAB, WIDTH), *[Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH),
                                   nn.Linear(WIDTH, VOCAB)).to("cuda", torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.batch = torch.randint(VOCAB, (BATCH, LENGTH + 1)).pin_memory()
        self.side = torch.cuda.Stream()
        self.number = itertools.count()

    def step(self):
        n, begin = next(self.number), time.monotonic_ns()
        with torch.cuda.stream(self.side):
            tokens = self.batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(self.side)
        tokens.record_stream(torch.cuda.current_stream())
        logits = self.model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        row = {"step": n, "queued_ns": time.monotonic_ns() - begin}
        if n % 10 == 0:
            row["loss"] = loss.item()
        torch.cuda.current_stream().synchronize()
        return row


if __name__ == "__main__":
    trainer = Trainer()
    for _ in range(3):
        trainer.step()
    loops.serve(trainer.step, sys.argv[1])
