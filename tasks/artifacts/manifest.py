"""The manifest of an artifact, data/<step>/manifest.json: what it holds, under which keys, in which order.

{
  "format": 1,
  "step": "filter",
  "content": 64 hex,       SHA-256 over the files alone: canonical JSON of [path, sha256] pairs, sorted by path
  "recipe": {
    "step": "filter",
    "folders": {"signals": {"code": 64 hex, "params": {...}, "versions": {...}}, ...},
    "inputs": {"normalize": fingerprint, ...},
    "outside": {"sources": 64 hex, ...},       digests of what was read from outside
    "small": [limit, fraction]                 [null, null] but for a small run
  },
  "recipe_key": 64 hex,    digest of recipe
  "fingerprint": 64 hex,   digest of content and recipe: a Merkle root, as recipe holds the inputs' fingerprints
  "folders": [
    {
      "folder": "signals",
      "units": [
        {
          "unit": "prose-0123456789abcdef",
          "key": 64 hex,     equal keys, equal bytes: digest of setting and of the contents that were read
          "setting": 64 hex, digest of code, parameters, library versions and specification
          "files": {"signals/prose-0123456789abcdef.parquet": {"sha256": 64 hex, "bytes": 123}},
          "rows": 100,       of its Parquet file, 0 where it has none
          "counts": {"documents_in": 100},
          "origin": ["books/a.txt", 0]
        }
      ]
    }
  ]
}

Folders stand in the step's order; units source by source, each in the order of its origin, which is the order of the
corpus. No clock, host, path of a machine or worker count enters. The manifest is written last: an artifact without one
is no artifact.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.artifacts.canonical import digest, file_digest, pretty

FILE = "manifest.json"
FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """What is known of one unit of one folder. files: path inside the artifact -> {"sha256", "bytes"}."""

    key: str
    setting: str
    files: dict[str, dict[str, Any]]
    rows: int
    counts: dict[str, int]
    origin: tuple[str, int]

    @property
    def content(self) -> str:
        """Digest of the unit's files by suffix, whatever their names: what a later key depends on."""
        return digest(sorted((_suffix(path), facts["sha256"]) for path, facts in self.files.items()))

    @property
    def bytes(self) -> int:
        return sum(facts["bytes"] for facts in self.files.values())

    def suffixes(self) -> dict[str, str]:
        """suffix -> path inside the artifact."""
        return {_suffix(path): path for path in self.files}


@dataclass(frozen=True)
class Mismatch:
    """A file that is not what the manifest names. found is None where it is absent."""

    file: str
    expected: str
    found: str | None

    def __str__(self) -> str:
        return f"{self.file}: expected {self.expected}, found {self.found or 'no file'}"


@dataclass(frozen=True)
class Manifest:
    step: str
    recipe: dict[str, Any]
    folders: dict[str, dict[str, Entry]]

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """path inside the artifact -> {"sha256", "bytes"}, sorted by path."""
        entries = (entry for units in self.folders.values() for entry in units.values())
        return dict(sorted((path, facts) for entry in entries for path, facts in entry.files.items()))

    @property
    def content(self) -> str:
        """64 hex over the files alone."""
        return digest([[path, facts["sha256"]] for path, facts in self.files.items()])

    @property
    def fingerprint(self) -> str:
        return digest({"content": self.content, "recipe": self.recipe})

    @property
    def recipe_key(self) -> str:
        return digest(self.recipe)

    @property
    def inputs(self) -> dict[str, str]:
        """step -> fingerprint of the artifact that was read."""
        return dict(self.recipe.get("inputs", {}))

    @property
    def bytes(self) -> int:
        return sum(facts["bytes"] for facts in self.files.values())

    def write(self, folder: Path) -> None:
        """Write data/<step>/manifest.json; call it last."""
        (folder / FILE).write_text(pretty(self._plain()), encoding="utf-8")

    def verify(self, folder: Path) -> Iterator[Mismatch]:
        """Every file whose full digest differs, that is absent, or that nobody named. 1.5 GB a CPU second."""
        for path, facts in self.files.items():
            found = file_digest(folder / path) if (folder / path).is_file() else None
            if found != facts["sha256"]:
                yield Mismatch(path, facts["sha256"], found)
        for path in _stray(folder, set(self.files)):
            yield Mismatch(path, "no such file", file_digest(folder / path))

    def _plain(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "step": self.step,
            "content": self.content,
            "recipe": self.recipe,
            "recipe_key": self.recipe_key,
            "fingerprint": self.fingerprint,
            "folders": [
                {"folder": name, "units": [{"unit": unit} | vars(entry) for unit, entry in units.items()]}
                for name, units in self.folders.items()
            ],
        }

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of the artifact in `folder`; None where there is none that holds together."""
        try:
            plain = json.loads((folder / FILE).read_text(encoding="utf-8"))
            manifest = cls(plain["step"], plain["recipe"], _folders(plain["folders"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        sound = plain.get("format") == FORMAT and plain.get("fingerprint") == manifest.fingerprint
        return manifest if sound else None


def _folders(plain: list[dict[str, Any]]) -> dict[str, dict[str, Entry]]:
    return {item["folder"]: {unit["unit"]: _entry(unit) for unit in item["units"]} for item in plain}


def _entry(plain: dict[str, Any]) -> Entry:
    text, number = plain["origin"]
    return Entry(plain["key"], plain["setting"], plain["files"], plain["rows"], plain["counts"], (text, number))


def _suffix(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name[name.index(".") :] if "." in name else ""


def _stray(folder: Path, known: set[str]) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if path not in known and path != FILE)
