#!/usr/bin/env python3
"""nvidia-ctk writes a CDI specification from NVML and the driver root of a simulated a100x8.

usage: cdi_check.py NVIDIA-CTK ALIQUOT
"""
import json
import os
import stat
import subprocess
import sys
import tempfile

import pynvml

import surroundings
from check import expect


def specification(ctk, root):
    libraries = os.path.join(root, "usr/lib/x86_64-linux-gnu")
    run = subprocess.run([ctk, "cdi", "generate", "--mode=nvml", "--format=json",
                          f"--driver-root={root}", f"--dev-root={root}"],
                         env={**os.environ, "LD_LIBRARY_PATH": libraries}, capture_output=True,
                         text=True, timeout=60)
    expect(f"nvidia-ctk's status\n{run.stderr}", run.returncode, 0)
    return json.loads(run.stdout)


def main():
    ctk, aliquot = sys.argv[1:3]
    pynvml.nvmlInit()
    machine = os.path.basename(os.environ["ALIQUOT_TEST_MACHINE"])
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "root")
        laid = subprocess.run([aliquot, "sim", "root", machine, root], capture_output=True, text=True)
        expect("sim root", laid.returncode, 0)
        if "no device nodes" in laid.stderr:
            print(f"skipped: {laid.stderr}")
            sys.exit(77)
        spec = specification(ctk, root)
        expect("kind", spec["kind"], "nvidia.com/gpu")
        by_name = {device["name"]: device for device in spec["devices"]}
        expect("devices: each by index and by UUID, and all", len(by_name), 8 + 8 + 1)
        for index in range(8):
            node = by_name[str(index)]["containerEdits"]["deviceNodes"][0]
            expect("node", node["path"], f"/dev/nvidia{index}")
            expect("its number", (node["major"], node.get("minor", 0)), (195, index))
            uuid = pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index))
            expect("by UUID", by_name[uuid]["containerEdits"]["deviceNodes"][0], node)
            expect("char device", stat.S_ISCHR(os.stat(node["hostPath"]).st_mode), True)
        common = spec["containerEdits"]
        expect("common nodes", {n["path"] for n in common["deviceNodes"]},
               {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"})
        mounted = {m["containerPath"] for m in common["mounts"]}
        expect("not mounted", {f"/usr/lib/x86_64-linux-gnu/libcuda.so.{surroundings.driver}",
                               f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{surroundings.driver}",
                               "/usr/bin/nvidia-smi"} - mounted, set())
    print(f"nvidia-ctk (simulated, {surroundings.where}): a specification with eight GPUs")


if __name__ == "__main__":
    main()
