#!/usr/bin/env python3
"""A driver of another version: names younger than it are absent through every look-up, the others
are there, and dlsym, dlvsym and both versions of cuGetProcAddress agree. In a share, whose library
is found both as the driver and before it: opened by name, and the driver itself opened by its path.

usage: versions_check.py ALIQUOT -- the program, whose `abi` tells of each symbol since when it is
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys

import surroundings
from check import expect, expect_between


NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND
ABSENT = 1  # CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND


def has(entry):
    until = entry["until"] or 1 << 30
    return entry["since"] <= surroundings.cuda_number < until


def by_name(library, symbol):
    """As the loader and dlsym find it. The driver's names have no versions: dlvsym, which asks for
    one, finds nothing else."""
    dlvsym = ctypes.CDLL(None).dlvsym
    dlvsym.restype = ctypes.c_void_p
    dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    plain = (ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
             if hasattr(library, symbol) else None)
    versioned = dlvsym(library._handle, symbol.encode(), b"NONE")
    expect(f"{symbol} by dlvsym", versioned in (None, plain), True)
    return plain


def check_symbols(library, entries):
    wrong = [e["symbol"] for e in entries if (by_name(library, e["symbol"]) is not None) != has(e)]
    expect("symbols that are there or not against their version", wrong, [])
    return sum(not has(e) for e in entries)


def by_address(cuda, name, version):
    """What cuGetProcAddress answers: its code and the address. Its second version says the same,
    and what it found."""
    address, newer, status = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int(-1)
    code = cuda.cuGetProcAddress(name.encode(), ctypes.byref(address), version, ctypes.c_uint64(0))
    if surroundings.cuda_number >= 12000:
        expect(name, cuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(newer), version,
                                              ctypes.c_uint64(0), ctypes.byref(status)), code)
        expect(name, newer.value, address.value)
        expect(f"what was found of {name}", status.value, ABSENT if code else 0)
    return code, address.value


def check_addresses(cuda, entries):
    """By cuGetProcAddress, asked with the newest version there is."""
    for entry in (e for e in entries if not has(e) and e["symbol"][-1].isalpha()):
        plain = entry["symbol"]
        if any(e["symbol"].startswith(plain + "_v") and has(e) for e in entries):
            continue  # a name with an older meaning
        expect(plain, by_address(cuda, plain, 13050), (NOT_FOUND, None))
    for name, symbol in (("cuMemAlloc", "cuMemAlloc_v2"), ("cuInit", "cuInit")):
        expect(name, by_address(cuda, name, surroundings.cuda_number), (0, by_name(cuda, symbol)))


def ways_in():
    """The libraries, as a program may open them: by name, and in a share the driver's own files, in
    its namespaces or where the machine has them."""
    yield "libcuda.so.1", "libnvidia-ml.so.1"
    if surroundings.in_share:
        behind = pathlib.Path("/run/aliquot/driver/behind")
        machines = pathlib.Path(os.environ["ALIQUOT_STATE_DIR"], "sim")
        yield ((behind / "cuda", behind / "nvidia-ml") if behind.exists() else
               [next(machines.glob(f"*/lib/{name}")) for name in ("libcuda.so.1",
                                                                  "libnvidia-ml.so.1")])


def main():
    abi = json.loads(subprocess.run([sys.argv[1], "abi", "--json"], capture_output=True, text=True,
                                    check=True).stdout)
    for libraries in ways_in():
        cuda, nvml = (ctypes.CDLL(str(library)) for library in libraries)
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
