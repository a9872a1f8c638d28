#!/usr/bin/env python3
"""A program built on NVIDIA's runtime library, on a simulated machine or in a share of it: the driver
does not pass for a genuine one. Its calls fail with the runtime's ordinary error and one line says
why, once, whatever the program goes on to ask."""
import ctypes
import glob
import os
import subprocess
import sys

import surroundings
from check import expect


def program(library):
    """What such a program does first; prints its results."""
    runtime = ctypes.CDLL(library)
    count, version, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    print(runtime.cudaRuntimeGetVersion(ctypes.byref(version)), version.value)
    print(runtime.cudaGetDeviceCount(ctypes.byref(count)), count.value)
    print(runtime.cudaMalloc(ctypes.byref(memory), 4096), memory.value)
    print(runtime.cudaDeviceSynchronize())


def main():
    if len(sys.argv) > 1:
        return program(sys.argv[1])
    packages = os.path.join(sys.prefix, "lib", "python3*", "site-packages")
    library, = glob.glob(os.path.join(packages, "nvidia", "*", "lib", "libcudart.so.1?"))
    run = subprocess.run([sys.executable, __file__, library], capture_output=True, text=True,
                         timeout=60)
    symbol_not_found = 500
    expect("results", run.stdout.splitlines(),
           ["0 13000", f"{symbol_not_found} 0", f"{symbol_not_found} None", str(symbol_not_found)])
    expect("lines of why", run.stderr.splitlines(), [
        "simulated libcuda: a library asks for NVIDIA's private tables, which a simulated driver "
        "does not have; programs built on NVIDIA's runtime library need a real GPU"])
    print(f"runtime library 13.0 (simulated, {surroundings.where}): refused, and told why once")


if __name__ == "__main__":
    main()
