#!/usr/bin/env python3
"""usage: shares_bench.py BUILD_DIR [ARGUMENT...] -- the twelve real-time cells of `aliquot bench shares` on a
simulated machine of its own; prints the command's JSON. Ends with 2 when this host woke sleepers too
late for the figures to count."""
import os, pathlib, subprocess, sys, tempfile

aliquot = pathlib.Path(sys.argv[1]).resolve() / "bin" / "aliquot"
with tempfile.TemporaryDirectory(prefix="aliquot-shares.") as state:
    environment = {**os.environ, "ALIQUOT_STATE_DIR": state}
    for name in ("ALIQUOT_SIM", "ALIQUOT_LEASE", "LD_PRELOAD"):
        environment.pop(name, None)

    def run(*words, **more):
        return subprocess.run([aliquot, *words], env=environment, text=True, **more)

    run("sim", "up", "--node", "a100x2", "--name", "bench", check=True, stdout=subprocess.DEVNULL)
    try:
        status = run("bench", "shares", "--sim", "bench", "--json", *sys.argv[2:]).returncode
    finally:
        run("sim", "down", "bench", stdout=subprocess.DEVNULL)
        run("broker", "--stop", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
sys.exit(status)
