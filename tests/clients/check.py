"""What the client checks share: a load on a GPU, and expectations that say what they saw."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXT_MIB = 430  # of an A100's context, in the model's file


class Load:
    """cuda_load.py as a child; its pid is what the driver should list."""

    def __init__(self, gpu, mib, percent, seconds=60):
        words = [str(word) for word in (gpu, mib, seconds, percent)]
        self.child = subprocess.Popen([sys.executable, os.path.join(HERE, "cuda_load.py"), *words],
                                      stdout=subprocess.PIPE, text=True)
        if self.child.stdout.readline() != "ready\n":
            sys.exit("the load did not start")
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def client(name, *arguments):
    """What a program of the venv prints."""
    program = os.path.join(os.path.dirname(sys.executable), name)
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    if run.returncode != 0:
        sys.exit(f"{name} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    return run.stdout


def expect(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what}: saw {seen!r}, expected {wanted!r}")


def expect_between(what, seen, low, high):
    if not low <= seen <= high:
        sys.exit(f"{what}: saw {seen!r}, expected {low} to {high}")
