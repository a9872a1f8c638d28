#!/usr/bin/env python3
"""usage: gpu_torch.py READY GO SECONDS -- an unmodified PyTorch in a share: what it sees of the memory, how a
request for more than all of it is refused, and how many steps end in the SECONDS after the time (of
time.time) that the file GO holds. Makes the file READY when it is about to wait for GO; works from a
second before to a second after, so that beside another one all that counts is contended. Prints JSON."""
import json, pathlib, sys, time
import torch

ready, go, seconds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), float(sys.argv[3])
taken = 1 << 30
free, total = torch.cuda.mem_get_info()
block = torch.empty(taken, dtype=torch.uint8, device="cuda")
free_beside, _ = torch.cuda.mem_get_info()
del block
refusal = ""
try:
    torch.empty(total, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    refusal = str(error)
a = torch.randn(2048, 2048, device="cuda")
a @ a
torch.cuda.synchronize()
ready.touch()
while not go.exists():
    time.sleep(0.01)
begin = float(go.read_text())
time.sleep(max(0, begin - 1 - time.time()))
steps, now = 0, time.time()
while now < begin + seconds + 1:
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
    now = time.time()
    if begin <= now < begin + seconds:
        steps += 10
print(json.dumps({"free": free, "free_beside": free_beside, "taken": taken, "total": total,
                  "refusal": refusal[:120], "steps": steps}))
