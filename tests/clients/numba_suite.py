#!/usr/bin/env python3
"""numba-cuda's own tests of its driver layer (they come with its wheel) on a simulated a100x8, each
module in a process of its own as their authors run them, against the list of those that pass.

usage: numba_suite.py LIST.json [--write] -- --write adds what passes now; reasons are for people
"""
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import unittest

PACKAGE = "numba.cuda.tests.cudadrv"
MODULE_SECONDS = 240


class Recorder(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.outcomes = {}

    def note(self, test, outcome):
        # What is not a test of its own (a class that cannot be set up) has no such name.
        name = test.id().removeprefix(PACKAGE + ".")
        if self.outcomes.get(name) != "failed":
            self.outcomes[name] = outcome

    def addSuccess(self, test):
        self.note(test, "passed")

    def addFailure(self, test, _):
        self.note(test, "failed")

    def addError(self, test, _):
        self.note(test, "failed")

    def addSubTest(self, test, _, error):
        if error is not None:
            self.note(test, "failed")

    def addSkip(self, test, reason):
        self.note(test, "skipped")


def tests_in(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from tests_in(part)
        else:
            yield part


def run_here(module, report, left_out):
    """In the child: one module, whose outcomes go to the file."""
    every = tests_in(unittest.defaultTestLoader.loadTestsFromName(f"{PACKAGE}.{module}"))
    chosen = [t for t in every if t.id().removeprefix(PACKAGE + ".") not in left_out]
    recorder = Recorder()
    unittest.TestSuite(chosen).run(recorder)
    with open(report, "w") as out:
        json.dump(recorder.outcomes, out)


def run_module(module, left_out):
    with tempfile.TemporaryDirectory() as scratch:
        report = os.path.join(scratch, "outcomes")
        words = [sys.executable, __file__, "--module", module, report, *left_out]
        try:
            child = subprocess.run(words, cwd=scratch, capture_output=True, text=True,
                                   timeout=MODULE_SECONDS)
        except subprocess.TimeoutExpired:
            sys.exit(f"{module}: not done in {MODULE_SECONDS} s")
        if not os.path.exists(report):
            sys.exit(f"{module}: ended with {child.returncode}\n{child.stderr[-2000:]}")
        return json.load(open(report))


def modules():
    import numba.cuda.tests.cudadrv as package
    return [m.name for m in pkgutil.iter_modules(package.__path__) if m.name.startswith("test_")]


def compare(outcomes, listed):
    passing, others = set(listed["passing"]), listed["not_passing"]
    skipped = listed["skipped_by_the_suite"]
    faults = []
    for test, outcome in sorted(outcomes.items()):
        if test in passing and outcome != "passed":
            faults.append(f"{test}: {outcome}, and on the list of those that pass")
        if test in others and outcome == "passed":
            faults.append(f"{test}: passes now; move it to those that pass")
        if test not in passing and test not in others and test not in skipped:
            faults.append(f"{test}: {outcome}, and on no list")
    known = set(outcomes) | set(listed["not_run"])
    faults += [f"{test}: on the list, and gone" for test in (passing | set(others)) - known]
    faults += [f"{test}: listed without a reason" for kind in ("not_passing", "not_run")
               for test, reason in listed[kind].items() if not reason.strip(" ?")]
    if len(passing) < listed["at_least"]:
        faults.append(f"only {len(passing)} are listed as passing")
    return faults


def main():
    if sys.argv[1] == "--module":
        return run_here(sys.argv[2], sys.argv[3], set(sys.argv[4:]))
    listed = json.load(open(sys.argv[1]))
    outcomes = {}
    for module in modules():
        outcomes.update(run_module(module, listed["not_run"]))
    count = {kind: list(outcomes.values()).count(kind) for kind in ("passed", "failed", "skipped")}
    print(f"numba-cuda's driver tests (simulated): {count['passed']} passed, {count['failed']} "
          f"failed as listed, {count['skipped']} skipped by the suite itself, "
          f"{len(listed['not_run'])} not run")
    if "--write" in sys.argv:
        listed["passing"] = sorted(set(listed["passing"]) |
                                   {t for t, o in outcomes.items() if o == "passed"})
        for test, outcome in outcomes.items():
            if outcome == "failed":
                listed["not_passing"].setdefault(test, "?")
        json.dump(listed, open(sys.argv[1], "w"), indent=1)
        print("", file=open(sys.argv[1], "a"))
    faults = compare(outcomes, listed)
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
