"""What goes with every command: where, in which form, and how much is said of errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Asked:
    """root: the project's folder. json: results as JSON on standard output. debug: tracebacks of errors."""

    root: Path = Path()
    json: bool = False
    debug: bool = False


ASKED = Asked()
EVERYWHERE = "-C DIR, --json and --debug go with every command."
