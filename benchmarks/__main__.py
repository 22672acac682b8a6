"""`python -m benchmarks [NAME...]`: every benchmark of this folder, or those named; each is a module with main()."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def names() -> list[str]:
    """The benchmarks there are; modules that begin with peer run in the peers' own environment."""
    found = (path.stem for path in Path(__file__).parent.glob("*.py"))
    return sorted(name for name in found if not name.startswith(("_", "peer", "figures")))


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        importlib.import_module(f"benchmarks.{name}").main()
