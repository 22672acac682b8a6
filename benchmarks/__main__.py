"""`python -m benchmarks [NAME...]`: every benchmark of this folder, or those named; each is a module with main()."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from benchmarks.figures import heading


def names() -> list[str]:
    """The benchmarks there are: the modules with a main(); those that begin with peer run in the peers' environment."""
    found = (path for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith(("_", "peer")))
    return sorted(path.stem for path in found if "\ndef main(" in path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    heading()
    for name in sys.argv[1:] or names():
        importlib.import_module(f"benchmarks.{name}").main()
