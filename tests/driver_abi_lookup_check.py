#!/usr/bin/env python3
"""usage: driver_abi_lookup_check.py ABI_ANSWERS -- the tables answer as observed drivers do.

The expected answers are computed here from the shared data (observed requests, the versions of the
typedef tables, the names of each header), never from our own tables. Exits 77 without the data."""
import collections, itertools, os, pathlib, re, subprocess, sys

answers = sys.argv[1]
root = pathlib.Path(__file__).resolve().parent.parent
data = pathlib.Path(os.environ.get("ALIQUOT_SHARED_DATA", root.parent / "shared/data"))
if not (data / "cuda_proc_addresses.tsv").is_file():
    print(f"skipped: no shared data at {data} (set ALIQUOT_SHARED_DATA)")
    sys.exit(77)

FIRST_BELOW, ALL_HEADERS = 11080, (11080, 12090, 13000, 13050)
bad = []


def lines(name):
    return [l.rstrip("\n") for l in open(data / name) if l.strip() and not l.startswith("#")]


# base -> list of (version, symbol), once for ordinary and once for per-thread streams
plain, streams, rows_of = collections.defaultdict(dict), collections.defaultdict(dict), {}
symbols_of_stream_row = collections.defaultdict(list)
for row in lines("cuda_proc_addresses.tsv"):
    base, version, symbol, kind = row.split("\t")
    (streams if kind == "pt" else plain)[base][int(version)] = symbol
    if kind == "pt":
        symbols_of_stream_row[symbol].append((base, int(version)))
# The list names the newest _ptsz symbol for every version of a call. Versions differ in signature,
# so each has its own: the ordinary symbol of that version and the suffix. The headers agree
# (driver_abi_headers_check.py), and a 13.0 driver exports them.
for symbol, uses in symbols_of_stream_row.items():
    if len(uses) > 1:
        for base, version in uses:
            streams[base][version] = plain[base][version] + symbol[-5:]
# First versions of calls for which real clients ask only the second.
for base, version in (("cuGLCtxCreate", 2000), ("cuGLMapBufferObject", 2000),
                      ("cuGLMapBufferObjectAsync", 2030), ("cuVDPAUCtxCreate", 3010)):
    plain[base][version] = base
exports = set(lines("cuda_exports.txt"))
newer = set(lines("names_13_1_to_13_5.txt"))


def expected(base, version, flag, driver):
    def best(table):
        known = {v: s for v, s in table.get(base, {}).items() if v <= driver}
        return max(((v, s) for v, s in known.items() if v <= version), default=None), bool(known)
    streams_hit, _ = best(streams)
    hit, known = best(plain)
    if flag & 2 and streams_hit:
        return streams_hit[1]
    return hit[1] if hit else "version-too-low" if known else "not-found"


def ask(requests):
    text = "".join(f"{b} {v} {f} {d}\n" for b, v, f, d in requests)
    out = subprocess.run([answers, "gpa"], input=text, capture_output=True, text=True, check=True)
    return out.stdout.split("\n")[:-1]


def compare(requests, what):
    got = ask(requests)
    assert len(got) == len(requests)
    for request, symbol in zip(requests, got):
        if symbol != expected(*request):
            bad.append(f"{what} {request}: {symbol}, expected {expected(*request)}")
    print(f"{what}: {len(requests)} requests")


# 1. what the runtime and real clients ask, of a driver as old as each header
observed = set()
for file in [data / "cuda_runtime_13_requests.txt", *sorted((data / "clients").glob("*.gpa"))]:
    for row in open(file):
        base, version, flag = row.split()
        if base.startswith("cu"):
            observed.add((base, int(version), int(flag)))
names_13x = {re.sub(r"_v\d$", "", n) for n in newer if n.startswith("cu")}
compare(sorted((*r, d) for r in observed for d in (11080, 12090, 13000)), "observed")
# 2. every base at, just below and just above each of its versions, with every flag
full = set()
for base in set(plain) | set(streams):
    versions = {0, 1000, 99999} | {v + d for t in (plain, streams) for v in t.get(base, {})
                                   for d in (-10, 0, 10)}
    full |= set(itertools.product([base], versions, (0, 1, 2), (8000, 11080, 12040, 12090, 13000)))
compare(sorted(full), "whole table")
# 3. names that 13.0 does not have, and names that nobody has
compare([(n, v, f, 13000) for n in sorted(names_13x - set(plain)) + ["cuNoSuchCall", "cudnnCreate"]
         for v in (13000, 13050) for f in (0, 2)], "absent names")

# 4. the rows: every exported name, in the versions whose header has it
def rows(table):
    out = subprocess.run([answers, table], capture_output=True, text=True, check=True).stdout
    return {r[0]: (int(r[2]), int(r[3])) for r in (l.split("\t") for l in out.splitlines())}


def in_version(row, version):
    return row[0] <= version and (row[1] == 0 or version < row[1])


tables = {"cuda": rows("cuda"), "nvml": rows("nvml")}
for name in exports | newer | set(lines("nvml_exports.txt")):
    if name not in tables["nvml" if name.startswith("nvml") else "cuda"]:
        bad.append(f"{name}: no row")
at_130 = {n for n, row in tables["cuda"].items() if in_version(row, 13000)}
for name in sorted(at_130 ^ exports):
    bad.append(f"{name}: {'not ' if name in at_130 else ''}exported by 13.0")
# Names that one header leaves out: there before and after; of 12.9 by the versions of 13.0.
OMITTED = {("nvmlDevicePowerSmoothingSetState", 13000), ("cuGreenCtxGetId", 12090)}
checked = 0
for row in lines("since.tsv"):
    library, name, *marks = row.split("\t")
    for version, mark in zip(ALL_HEADERS, marks):
        if mark == "?" or (name, version) in OMITTED:
            continue
        checked += 1
        if in_version(tables[library][name], version) != (mark == "y"):
            bad.append(f"{name} in {version}: header says {mark}, row {tables[library][name]}")
print(f"headers' names: {checked} marks")
print("\n".join(bad))
sys.exit(bool(bad))
