#!/usr/bin/env bash
. "$(dirname "$0")/harness.sh"
pod hello busybox 'echo hello from a pod' | create
within 30 phase_is hello Succeeded
same "its output" "hello from a pod" "$(kubectl logs hello)"
pod python debian 'python3 -c "import pynvml; print(pynvml.__name__)"' | create
within 30 phase_is python Succeeded
same "nvidia-ml-py in the Debian image" pynvml "$(kubectl logs python)"
same "GPUs of the simulated machine beside it" 8 "$(aliquot smi --query-gpu=name --format=csv,noheader | wc -l)"
