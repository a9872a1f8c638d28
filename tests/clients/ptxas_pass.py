#!/usr/bin/env python3
"""Stands for ptxas where a driver reads PTX itself: copies its input to what -o names. It is of the
driver's version, so that no younger PTX is sent than the driver reads."""
import os
import shutil
import sys

words = sys.argv[1:]
if "--version" in words:
    version = os.environ.get("ALIQUOT_TEST_CUDA") or "13.0"
    print(f"Cuda compilation tools, release {version}, V{version}.0")
else:
    source = next(word for word in words if word.endswith(".ptx"))
    shutil.copyfile(source, words[words.index("-o") + 1])
