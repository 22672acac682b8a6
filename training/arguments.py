"""What `python -m training.train` may be asked."""

from __future__ import annotations

import argparse
from pathlib import Path

from training.logs import SERVICES


def asked_of(arguments: list[str] | None) -> argparse.Namespace:
    """pin, params or like, root, run, resume, allow_other_pin, log, control; ends the process where they clash."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description="Train on a pin.")
    parser.add_argument("pin", nargs="?", help="release name, tag or beginning of a fingerprint")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--params", type=Path, help="JSON: the section train of params.yaml")
    how.add_argument("--like", type=Path, help="a run.json: repeat that run, on its own pin if none is named")
    parser.add_argument("--root", type=Path, default=Path(), help="the folder that holds pins/ and gets runs/")
    parser.add_argument("--run", help="name of the run; by default from data and params")
    parser.add_argument("--resume", action="store_true", help="go on from the run's checkpoint")
    parser.add_argument("--allow-other-pin", action="store_true", help="even where it belongs to other data")
    parser.add_argument("--log", choices=SERVICES, default="lines", help="where figures go")
    parser.add_argument("--control", type=int, default=0, metavar="N", help="N steps more with one batch repeated")
    asked = parser.parse_args(arguments)
    if asked.params and not asked.pin:
        parser.error("--params needs a pin")
    return asked
