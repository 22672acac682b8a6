"""Ours beside a trainer that has a package `training` of its own: all of it under one other name, as a wheel.

In: a name. Out: <name>-<version>-py3-none-any.whl that holds training and tasks.artifacts as <name>.training and
<name>.tasks.artifacts, their imports of each other rewritten; `pip install` takes it without building anything. The
same sources give the same bytes. Nothing else of the house is in it.

    python -m training.wheel dist/ --name gristmill_training
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1]
FOLDERS = ("training", "tasks/artifacts")
IMPORT = re.compile(r"^(\s*)(from|import)(\s+)((?:training|tasks)(?:\.\w+)*)\b(.*)$")
STAMP = (1980, 1, 1, 0, 0, 0)
VERSION = "0.1.0"
NEEDS = ("torch", "numpy", "pyarrow")


def make_wheel(folder: Path, name: str = "gristmill_training") -> Path:
    """Write the wheel into `folder`; raises ValueError for a name that is no package's or is taken by us."""
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in ("training", "tasks", "flows", "audit"):
        raise ValueError(f"{name!r} cannot be the package; use a to z, 0 to 9 and _, as gristmill_training")
    files = dict(_modules(name))
    info = f"{name}-{VERSION}.dist-info"
    files[f"{info}/METADATA"] = "\n".join(
        [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            f"Version: {VERSION}",
            *(f"Requires-Dist: {one}" for one in NEEDS),
            "",
        ]
    )
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: gristmill\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = [f"{path},{_digest(text)},{len(text.encode())}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""])
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, STAMP), text)
    return wheel


def renamed(source: str, name: str) -> str:
    """`source` with its imports of our packages below `name`; raises ValueError for a form that cannot be moved."""
    return "".join(_moved(line, name) for line in source.splitlines(keepends=True))


def _moved(line: str, name: str) -> str:
    found = IMPORT.match(line)
    if found is None:
        return line
    indent, word, blank, module, rest = found.groups()
    if word == "import" and not rest.strip().startswith("as "):
        raise ValueError(f"{line.strip()!r} binds the name of a package; write `from ... import ...`")
    return f"{indent}{word}{blank}{name}.{module}{rest}\n"


def _modules(name: str) -> Iterator[tuple[str, str]]:
    """(path in the wheel, source); the folders above get an empty __init__."""
    yield f"{name}/__init__.py", '"""Gristmill\'s training under a name of its own: see <name>.training."""\n'
    yield f"{name}/tasks/__init__.py", ""
    for folder in FOLDERS:
        for path in sorted((HOUSE / folder).glob("*.py")):
            if path != Path(__file__).resolve():
                yield f"{name}/{folder}/{path.name}", renamed(path.read_text(encoding="utf-8"), name)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def main(arguments: list[str] | None = None) -> None:
    """The command; prints the path of the wheel."""
    parser = argparse.ArgumentParser(prog="python -m training.wheel", description="Training under another name.")
    parser.add_argument("folder", type=Path, help="where to write the wheel")
    parser.add_argument("--name", default="gristmill_training", help="the package that holds all of it")
    asked = parser.parse_args(arguments)
    print(make_wheel(asked.folder, asked.name))


if __name__ == "__main__":
    main()
