#!/usr/bin/env python3
"""A driver of another version: names younger than it are absent through every look-up, the others are
there, and dlsym and cuGetProcAddress agree.

usage: versions_check.py ALIQUOT -- the program, whose `abi` tells of each symbol since when it is
"""
import ctypes
import json
import subprocess
import sys

import surroundings
from check import expect, expect_between


def check_symbols(library, entries):
    """By name, as the loader and dlsym find them."""
    wrong = [e["symbol"] for e in entries if hasattr(library, e["symbol"]) != has(e)]
    expect("symbols that are there or not against their version", wrong, [])
    return sum(not has(e) for e in entries)


def has(entry):
    until = entry["until"] or 1 << 30
    return entry["since"] <= surroundings.cuda_number < until


def check_addresses(cuda, entries):
    """By cuGetProcAddress, asked with the newest version there is."""
    address = ctypes.c_void_p()
    for entry in (e for e in entries if not has(e) and e["symbol"][-1].isalpha()):
        plain = entry["symbol"]
        if any(e["symbol"].startswith(plain + "_v") and has(e) for e in entries):
            continue  # a name with an older meaning
        code = cuda.cuGetProcAddress(plain.encode(), ctypes.byref(address), 13050,
                                     ctypes.c_uint64(0))
        expect(plain, (code, address.value), (500, None))
    for name, symbol in (("cuMemAlloc", "cuMemAlloc_v2"), ("cuInit", "cuInit")):
        expect(name, cuda.cuGetProcAddress(name.encode(), ctypes.byref(address),
                                           surroundings.cuda_number, ctypes.c_uint64(0)), 0)
        expect(name, address.value, ctypes.cast(getattr(cuda, symbol), ctypes.c_void_p).value)


def main():
    abi = json.loads(subprocess.run([sys.argv[1], "abi", "--json"], capture_output=True, text=True,
                                    check=True).stdout)
    cuda, nvml = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libnvidia-ml.so.1")
    version = ctypes.c_int()
    expect("cuDriverGetVersion", cuda.cuDriverGetVersion(ctypes.byref(version)), 0)
    expect("version", version.value, surroundings.cuda_number)
    absent = check_symbols(cuda, abi["CUDA driver"]["entries"])
    absent_nvml = check_symbols(nvml, abi["NVML"]["entries"])
    check_addresses(cuda, abi["CUDA driver"]["entries"])
    expect_between("younger names", absent, 30, 500)
    print(f"names (simulated, {surroundings.where}): {absent} of CUDA and {absent_nvml} of NVML "
          "younger than the driver, absent through every look-up")


if __name__ == "__main__":
    main()
