#!/usr/bin/env python3
"""Fails when docs/simulated-machine.md and the models' files differ: every parameter of every model
has its value there, and a source (or "assumed")."""
import json
import pathlib
import sys

root = pathlib.Path(sys.argv[1])


def shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def parameters(model):
    for key, value in model.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", shown(v)) for inner, v in value.items())
        elif key not in ("name", "mig"):
            yield key, shown(value)


rows = [[cell.strip() for cell in line.strip("|").split("|")]
        for line in (root / "docs/simulated-machine.md").read_text().splitlines()
        if line.startswith("| ")]
head = next(row for row in rows if row[0] == "parameter")
told = {row[0]: dict(zip(head[1:], row[1:])) for row in rows if len(row) == len(head)}
bad = [f"{name}: no source" for name, row in told.items() if not row["source"]]
for file in sorted((root / "src/simdriver/models").glob("*.json")):
    for name, value in parameters(json.loads(file.read_text())):
        seen = told.get(name, {}).get(file.stem)
        if seen != value:
            bad.append(f"{file.name}: {name} is {value}, the docs say {seen}")
print("\n".join(bad))
sys.exit(bool(bad))
