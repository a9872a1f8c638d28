#!/usr/bin/env python3
"""Writes trace.csv, a made-up day on cluster.csv: shares for serving and notebooks, whole GPUs for
training, a few jobs of eight GPUs, some without any. With --check, tells whether trace.csv is what
this would write.

Its rates are chosen so that the 68 GPUs are asked a little more than they have at midday, when
policies differ. Nothing in it was measured.
"""
import math, pathlib, random, sys

JOBS = 400
DAY_S = 24 * 3600

# weight, name, gpus, gpu_milli, gpu_memory_mib, cpu_milli, memory_mib, gpu_models, median minutes
KINDS = [
    (22, "infer", 1, 250, 8192, 2000, 8192, "", 150),
    (14, "infer-large", 1, 500, 20480, 4000, 16384, "A100|H100", 200),
    (12, "notebook", 1, 0, 6144, 1000, 8192, "", 90),
    (10, "tune", 1, 650, 12288, 6000, 32768, "", 100),
    (16, "train", 1, 1000, 0, 8000, 65536, "", 160),
    (8, "train", 2, 1000, 0, 16000, 131072, "", 180),
    (6, "train", 4, 1000, 0, 32000, 262144, "A100|H100", 200),
    (3, "train", 8, 1000, 81920, 64000, 524288, "", 240),
    (9, "prepare", 0, 0, 0, 8000, 32768, "", 40),
]


def arrival(draw):
    """Twice as busy at two in the afternoon as at two in the night."""
    while True:
        at = draw() * DAY_S
        if draw() * 1.5 < 1 - 0.5 * math.cos(2 * math.pi * (at / DAY_S - 2 / 24)):
            return int(at)


def kind(draw):
    at = draw() * sum(k[0] for k in KINDS)
    for k in KINDS:
        at -= k[0]
        if at < 0:
            return k
    return KINDS[-1]


def trace():
    draw = random.Random(20240607).random  # the same on every Python
    lines = ["name,arrival_s,duration_s,gpus,gpu_milli,gpu_memory_mib,cpu_milli,memory_mib,gpu_models"]
    for number, at in enumerate(sorted(arrival(draw) for _ in range(JOBS))):
        _, name, gpus, milli, gpu_memory, cpu, memory, models, minutes = kind(draw)
        # Spread around the median by a factor of up to 4 either way, small factors more often.
        duration = round(minutes * 60 * 4 ** (draw() + draw() - 1))
        lines.append(f"{name}-{number:03},{at},{duration},{gpus},{milli},{gpu_memory},{cpu},{memory},{models}")
    return "\n".join(lines) + "\n"


file = pathlib.Path(__file__).parent / "trace.csv"
if sys.argv[1:] == ["--check"]:
    sys.exit(0 if file.read_text() == trace() else f"{file.name} is not what make_trace.py writes")
file.write_text(trace())
