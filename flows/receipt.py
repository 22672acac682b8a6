"""What a release says of itself: the text of releases/<name>.json.

In: the artifacts that stand, data/sources.json, data/code.json, dvc.lock, git. Out: plain data:

format       1
name, created            the release's name; UTC with offset
fingerprint, content     mix's fingerprint, a Merkle root over the whole corpus; of the nine contents in order
git          {"revision": commit of the recipe (the release's own commit is its child)}
steps        step -> {"fingerprint", "content", "recipe", "code", "dvc": hash, "bytes", "counts"}
raw          {"digest": of what lay at the sources, "bytes"}      rules      digest of filter's rules and code
tokenizer    {"name", "sha256"}          pack, shard, mix   their sections of params.yaml
versions     distribution -> version          files   what a pin holds: path -> {"sha256", "bytes"}
"""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import yaml

from flows.fetch import pin_files
from flows.funnel import totals
from flows.releases import mixture_of, order_of
from flows.versioning import git
from tasks.artifacts.canonical import digest
from tasks.artifacts.manifest import Manifest
from tasks.errors import GristmillError
from tasks.pipeline import STEPS
from tasks.project import Project

LIBRARIES = ("datasketch", "dvc", "gristmill", "numpy", "prefect", "pyarrow", "sentencepiece", "torch")


def receipt(project: Project, name: str) -> dict[str, Any]:
    """The record of a release of what stands now."""
    manifests = _manifests(project)
    mixture = mixture_of(project)
    return {
        "format": 1,
        "name": name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": manifests["mix"].fingerprint,
        "content": digest([manifest.content for manifest in manifests.values()]),
        "git": {"revision": git(project.root, "rev-parse", "HEAD")},
        "steps": _steps(project, manifests),
        "raw": _raw(project),
        "rules": digest({"params": project.section("filter"), "code": _code(project)["filter"]}),
        "tokenizer": mixture["tokenizer"],
        "pack": project.section("pack"),
        "shard": project.section("shard"),
        "mix": project.section("mix"),
        "order": order_of(mixture),
        "versions": _versions(),
        "files": pin_files(project),
    }


def _manifests(project: Project) -> dict[str, Manifest]:
    manifests = {}
    for step in STEPS:
        manifest = Manifest.read(project.artifact(step))
        if manifest is None:
            raise GristmillError(f"data/{step} does not stand", "build it: gristmill build")
        manifests[step] = manifest
    return manifests


def _steps(project: Project, manifests: dict[str, Manifest]) -> dict[str, Any]:
    hashes, code = _dvc_hashes(project), _code(project)
    return {
        step: {
            "fingerprint": manifest.fingerprint,
            "content": manifest.content,
            "recipe": manifest.recipe,
            "code": code[step],
            "dvc": hashes.get(step),
            "bytes": manifest.bytes,
            "counts": _counts(manifest),
        }
        for step, manifest in manifests.items()
    }


def _counts(manifest: Manifest) -> dict[str, dict[str, int]]:
    """folder -> measure -> sum; folders that count nothing are left out."""
    summed = {folder: dict(sorted(totals(manifest, folder).items())) for folder in manifest.folders}
    return {folder: counts for folder, counts in summed.items() if counts}


def _raw(project: Project) -> dict[str, Any]:
    sources = json.loads((project.data / "sources.json").read_text(encoding="utf-8"))
    return {"digest": digest(sources["sources"]), "bytes": raw_bytes(sources)}


def raw_bytes(sources: dict[str, Any]) -> int:
    """The size of all raw text as it lies on disk, by the content of data/sources.json."""
    return sum(facts["bytes"] for source in sources["sources"].values() for facts in source["files"].values())


def _code(project: Project) -> dict[str, str]:
    return dict(json.loads((project.data / "code.json").read_text(encoding="utf-8")))


def _dvc_hashes(project: Project) -> dict[str, str]:
    lock = yaml.safe_load((project.root / "dvc.lock").read_text(encoding="utf-8"))
    stages = lock.get("stages", {})
    return {step: stages[step]["outs"][0]["md5"] for step in STEPS if step in stages}


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in LIBRARIES}
