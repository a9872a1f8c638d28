#!/usr/bin/env python3
"""usage: shares_bench.py BUILD_DIR [--real] [ARGUMENT...] -- the twelve real-time cells of `aliquot bench
shares` on a simulated machine of its own (--real: on this machine's GPU); prints the command's JSON
with the seconds it took and the worst mean error of a cell, cells of 50 ms kernels apart. Ends with 2
when this host woke sleepers too late for the figures to count, and says in which cells."""
import json, os, pathlib, subprocess, sys, tempfile, time

aliquot = pathlib.Path(sys.argv[1]).resolve() / "bin" / "aliquot"
real = sys.argv[2:3] == ["--real"]
arguments = sys.argv[3:] if real else ["--sim", "bench", *sys.argv[2:]]
with tempfile.TemporaryDirectory(prefix="aliquot-shares.") as state:
    environment = {**os.environ, "ALIQUOT_STATE_DIR": state}
    for name in ("ALIQUOT_SIM", "ALIQUOT_LEASE", "LD_PRELOAD"):
        environment.pop(name, None)

    def run(*words, **more):
        return subprocess.run([aliquot, *words], env=environment, text=True, **more)

    if not real:
        run("sim", "up", "--node", "a100x2", "--name", "bench", check=True, stdout=subprocess.DEVNULL)
    try:
        began = time.monotonic()
        done = run("bench", "shares", "--json", *arguments, stdout=subprocess.PIPE)
        seconds = time.monotonic() - began
    finally:
        if not real:
            run("sim", "down", "bench", stdout=subprocess.DEVNULL)
        run("broker", "--stop", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
if not done.stdout:
    sys.exit(done.returncode)


def worst_mean(cells):
    return max((cell["mean_error_points"] for cell in cells), default=0)


figures = json.loads(done.stdout)
long_kernels = [cell for cell in figures["cells"] if "/k50ms/" in cell["cell"]]
figures["seconds"] = seconds
figures["worst_cell_mean_50ms_points"] = worst_mean(long_kernels)
figures["worst_cell_mean_points"] = worst_mean(
    [cell for cell in figures["cells"] if cell not in long_kernels])
print(json.dumps(figures))
for cell in figures["cells"]:
    if not cell["valid"]:
        print(f"{cell['cell']}: sleepers woke {cell['wake_p99_us']:.0f} us late (99th percentile)",
              file=sys.stderr)
sys.exit(done.returncode)
