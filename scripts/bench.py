#!/usr/bin/env python3
"""usage: bench.py BUILD_DIR [--check] [--only PROGRAM [-- ARGUMENT...]] -- runs the benchmarks named in
bench/thresholds.json, each of which prints one JSON object, and prints all figures as JSON.
--check: also compares them with the thresholds; ends with 1 when one is missed. Arguments after --
go to the program, after those that stand in the file.

A figure is named by its place in the object: "shape.table_built_ms". A benchmark that ends with
status 2 says that its run is not valid (a busy machine): it is tried up to three times.
"""
import argparse, json, pathlib, shlex, subprocess, sys

INVALID, TRIES, LIMIT_S = 2, 3, 900


def command_of(build, name):
    """A program of the build, or a script of bench/ that is told where the build lies."""
    bench = pathlib.Path(__file__).resolve().parent.parent / "bench"
    return [sys.executable, bench / name, build] if name.endswith(".py") else [build / "bin" / name]


def run(build, name, arguments):
    for attempt in range(1, TRIES + 1):
        done = subprocess.run([*command_of(build, name), *arguments], capture_output=True,
                              text=True, timeout=LIMIT_S)
        if done.returncode == 0:
            return json.loads(done.stdout)
        why = done.stderr.strip()[-500:]
        if done.returncode != INVALID or attempt == TRIES:
            sys.exit(f"bench: {name} ended with {done.returncode}: {why}")
        print(f"bench: {name}: run {attempt} was not valid, trying again: {why}", file=sys.stderr,
              flush=True)


def figure(document, path):
    for key in path.split("."):
        document = document[int(key) if isinstance(document, list) else key]
    return document


def misses(document, limits):
    for limit in limits:
        try:
            value = figure(document, limit["figure"])
        except (KeyError, IndexError, ValueError, TypeError):
            yield f"{limit['figure']}: not among the figures"
            continue
        shown = f"{limit['figure']}: {value:g}"
        if "at_most" in limit and not value <= limit["at_most"]:
            yield f"{shown}, at most {limit['at_most']:g}"
        if "at_least" in limit and not value >= limit["at_least"]:
            yield f"{shown}, at least {limit['at_least']:g}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--only")
    own, more = sys.argv[1:], []
    if "--" in own:
        own, more = own[:own.index("--")], own[own.index("--") + 1:]
    chosen = arguments.parse_args(own)
    root = pathlib.Path(__file__).resolve().parent.parent
    rows = json.loads((root / "bench/thresholds.json").read_text())

    figures, missed = {}, []
    for row in rows:
        if chosen.only and row["program"] != chosen.only:
            continue
        print(f"bench: {row['program']}", file=sys.stderr, flush=True)
        given = shlex.split(row.get("arguments", "")) + more
        document = run(chosen.build, row["program"], given)
        figures[row["program"]] = document
        missed += [f"{row['program']}: {miss}" for miss in misses(document, row["limits"])]
    print(json.dumps(figures, indent=2))
    for miss in missed:
        print(f"bench: MISSED {miss}", file=sys.stderr)
    if chosen.check:
        print(f"bench: {'all thresholds held' if not missed else f'{len(missed)} missed'}",
              file=sys.stderr)
    return 1 if chosen.check and missed else 0


sys.exit(main())
