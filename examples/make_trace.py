#!/usr/bin/env python3
"""Writes trace.csv, a made-up day on cluster.csv: shares for serving and notebooks, whole GPUs for
training, a few jobs of eight GPUs, some without any; and training.csv, a day of distributed training
beside small jobs, with what each uses and sends. With --check, tells whether both are what this
would write.

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


# weight, name, pods, gpus, gpu_milli, used_milli, all_reduce_mb_s, read_mb_s, median minutes
TRAINING = [
    (30, "pair", 1, 2, 1000, 950, 900, 200, 60),
    (15, "triple", 1, 3, 1000, 950, 900, 200, 60),
    (15, "quad", 1, 4, 1000, 950, 900, 200, 90),
    (5, "octet", 2, 4, 1000, 950, 900, 200, 120),
    (20, "notebook", 1, 1, 300, 100, 0, 0, 120),
    (15, "infer", 1, 1, 500, 400, 0, 50, 180),
]


def training():
    draw = random.Random(20240608).random
    lines = ["name,arrival_s,duration_s,gpus,gpu_milli,gpu_memory_mib,cpu_milli,memory_mib,gpu_models,"
             "pods,used_milli,all_reduce_mb_s,read_mb_s,duration_gpu"]
    for number, at in enumerate(sorted(int(draw() * DAY_S) for _ in range(200))):
        pick = draw() * sum(k[0] for k in TRAINING)
        for weight, name, pods, gpus, milli, used, reduced, read, minutes in TRAINING:
            pick -= weight
            if pick < 0:
                break
        duration = round(minutes * 60 * 4 ** (draw() + draw() - 1))
        lines.append(f"{name}-{number:03},{at},{duration},{gpus},{milli},0,1000,8192,,"
                     f"{pods},{used},{reduced},{read},V100")
    return "\n".join(lines) + "\n"


for name, text in (("trace.csv", trace()), ("training.csv", training())):
    file = pathlib.Path(__file__).parent / name
    if sys.argv[1:] != ["--check"]:
        file.write_text(text)
    elif file.read_text() != text:
        sys.exit(f"{name} is not what make_trace.py writes")
