"""Earlier releases whose documents win in dedup, as they lie in against/<release>/.

In: the names in dedup.against, releases/<name>.json in git and the artifacts that `gristmill fetch NAME --documents`
laid. Out: what the plan of dedup needs of them, every file held against its digest. It fetches nothing.

against/<release>/normalize and dedup hold manifest.json and, of the folders in WANTED alone, the files that it names.
The release's record says which manifests they must be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tasks.artifacts.manifest import Manifest
from tasks.digests import Digests
from tasks.errors import IntegrityError, ParamsError, SourceError

FOLDER = "against"
WANTED = {"normalize": ("text",), "dedup": ("sketches", "verdicts")}
"""step -> folders whose files are needed."""


def scan_against(root: Path, recipe: Mapping[str, Any], digests: Digests) -> dict[str, Any]:
    """release -> {step: content of its artifact}, in the order of dedup.against: the section of data/sources.json.

    Raises SourceError where a release has no record or is not laid, IntegrityError where a file is another.
    """
    names = (recipe.get("dedup") or {}).get("against") or []
    if not isinstance(names, list) or not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise ParamsError(f"params.yaml: dedup.against is {names!r}", "write the names of releases, as [corpus-1]")
    return {name: _release(root, name, digests) for name in names}


def _release(root: Path, name: str, digests: Digests) -> dict[str, str]:
    steps = _record(root, name)
    for step in WANTED:
        home = root / FOLDER / name / step
        manifest = Manifest.read(home)
        if manifest is None or manifest.content != steps[step]:
            found = manifest.content[:12] if manifest else "nothing"
            raise SourceError(
                f"dedup.against names {name}, whose {step} is {steps[step][:12]}; {FOLDER}/{name}/{step} holds {found}",
                f"gristmill fetch {name} --documents",
            )
        _hold(home, dict(wanted_files(step, manifest)), digests, name)
    return steps


def _record(root: Path, name: str) -> dict[str, str]:
    path = root / "releases" / f"{name}.json"
    try:
        steps = json.loads(path.read_text(encoding="utf-8"))["steps"]
        return {step: str(steps[step]["content"]) for step in WANTED}
    except FileNotFoundError:
        raise SourceError(
            f"dedup.against names {name}, of which releases/ has no record",
            "bring the commit that holds it (git pull), or take it out",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise SourceError(f"{path} is no release", f"git checkout -- releases/{name}.json") from None


def _hold(home: Path, wanted: Mapping[str, str], digests: Digests, name: str) -> None:
    mend = f"gristmill fetch {name} --documents"
    absent = [path for path in wanted if not (home / path).is_file()]
    if absent:
        raise SourceError(f"{home / absent[0]} is not there, and {len(absent) - 1} more", mend)
    for path, facts in digests.of_files(home, list(wanted), f"release {name}").items():
        if facts["sha256"] != wanted[path]:
            raise IntegrityError(f"{home / path}: expected {wanted[path]}, found {facts['sha256']}", mend)


def wanted_files(step: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """(path inside the artifact, SHA-256) of what dedup needs of it."""
    for folder in WANTED[step]:
        for entry in manifest.folders[folder].values():
            yield from ((path, facts["sha256"]) for path, facts in entry.files.items())
