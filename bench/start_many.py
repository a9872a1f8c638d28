#!/usr/bin/env python3
"""usage: start_many.py BUILD_DIR [COUNT] -- seconds until COUNT (300) programs that start at once in
one lease over eight GPUs have each initialised, made a context, allocated and ended. Simulated."""
import os, pathlib, shutil, subprocess, sys, tempfile

build = pathlib.Path(sys.argv[1]).resolve()
count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
aliquot = build / "bin/aliquot"
state = tempfile.mkdtemp(prefix="aliquot-bench.")
environment = {**os.environ, "ALIQUOT_STATE_DIR": state}

# Runs inside the lease: every program at once, then the time until the last has ended.
INSIDE = """
import json, subprocess, sys, time
aliquot, count = sys.argv[1], int(sys.argv[2])
start = time.monotonic()
programs = [subprocess.Popen([aliquot, "burn", "--gpu", str(i % 8), "--memory", "16MiB"],
                             stdout=subprocess.PIPE, text=True) for i in range(count)]
answers = [p.communicate(timeout=120)[0] for p in programs]
seconds = time.monotonic() - start
good = sum(p.returncode == 0 and json.loads(a)["held_bytes"] == 16 << 20
           for p, a in zip(programs, answers))
print(json.dumps({"bench": "start_many", "simulated": True, "programs": count, "succeeded": good,
                  "failed": count - good, "seconds": seconds}))
"""
try:
    subprocess.run([aliquot, "sim", "up", "--node", "a100x8", "--name", "bench"], check=True,
                   env=environment, stdout=subprocess.DEVNULL)
    done = subprocess.run([aliquot, "run", "-q", "--gpus", "8", "--memory", "75GiB", "--",
                           sys.executable, "-c", INSIDE, aliquot, str(count)],
                          env=environment, capture_output=True, text=True, timeout=300)
    sys.stderr.write(done.stderr)
    print(done.stdout.strip())
    sys.exit(done.returncode)
finally:
    subprocess.run([aliquot, "sim", "down", "--all"], env=environment, capture_output=True)
    subprocess.run([aliquot, "broker", "--stop"], env=environment, capture_output=True)
    shutil.rmtree(state, ignore_errors=True)
