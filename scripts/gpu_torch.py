#!/usr/bin/env python3
"""usage: gpu_torch.py SECONDS -- an unmodified PyTorch in a share: what it sees of the memory, how a
request for more than all of it is refused, and how many steps it gets done. Prints JSON."""
import json, sys, time
import torch

free, total = torch.cuda.mem_get_info()
refusal = ""
try:
    torch.empty(total, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    refusal = str(error)
a = torch.randn(2048, 2048, device="cuda")
steps, end = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
    steps += 10
print(json.dumps({"free": free, "total": total, "refusal": refusal[:120], "steps": steps}))
