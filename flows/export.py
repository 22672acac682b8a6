"""A pin for other trainers, and the clean text for people.

In: a verified pin; for documents, the artifacts that it was laid from. Out: files in a folder that was not there.
Nothing is encoded or shuffled: a trainer of its own draws its own order. The forms for trainers stand in
flows.export_forms; beside them:

documents    <part>.jsonl or <part>.parquet, a row a kept document (with reasons: every document)
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from flows.export_forms import FORMS
from flows.scope import steps_until
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.schedule import SPLIT_NAMES
from tasks.artifacts.shards import ShardReader
from tasks.errors import IntegrityError, ParamsError, SpaceError
from tasks.project import Project
from tasks.staged import Staged
from tasks.survivors import spans
from tasks.text.excision import excise

COLUMNS = ["id", "text_sha", "source", "kind", "text", "url", "created", "metadata"]


@dataclass(frozen=True)
class Exported:
    """What export did. rows: documents or sequences; files: how many."""

    folder: Path
    form: str
    files: int
    rows: int


def export(root: Path, pin: str, form: str, folder: Path, kind: str = "jsonl", reasons: bool = False) -> Exported:
    """Write the pin in `form` to `folder`. kind: jsonl or parquet, of documents; reasons: dropped ones too, and why.

    Raises training.pin.PinError for a pin that is absent or damaged, ParamsError for a form that is not known or a
    folder that is there, IntegrityError where documents are asked for and data/ holds another corpus than the pin.
    """
    from training.pin import open_pin

    if form not in (*FORMS, "documents") or kind not in KINDS:
        raise ParamsError(
            f"export has no form {form} {kind}",
            f"forms are {', '.join(FORMS)}, and documents as {' or '.join(KINDS)}",
        )
    if folder.exists():
        raise ParamsError(f"{folder} is there already", "name a folder that is not")
    held = open_pin(pin, root)
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        if form == "documents":
            rows = sum(_documents(root, held.fingerprint, partial, kind, reasons))
        else:
            rows = sum(FORMS[form](partial, *shard) for shard in _shards(held))
        files = sum(path.is_file() for path in partial.rglob("*"))
        partial.rename(folder)
    except OSError as error:
        raise SpaceError(
            f"{folder} cannot be written: {error.strerror}", "make room, or name another folder"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Exported(folder, form, files, rows)


def _shards(pin: Any) -> Iterator[tuple[str, str, Path, ShardReader]]:
    for source in sorted(pin.schedule.sources):
        for split in SPLIT_NAMES:
            for path in pin.shards(source, split):
                yield source, split, path, ShardReader(path.parent, path.name)


def _documents(root: Path, fingerprint: str, folder: Path, kind: str, reasons: bool) -> Iterator[int]:
    """The documents of each part; the texts stand in data/ alone, so that must be what the pin was laid from."""
    project = Project(root)
    mix = Manifest.read(project.artifact("mix"))
    if mix is None or mix.fingerprint != fingerprint:
        raise IntegrityError(
            f"data/ holds {mix.fingerprint[:12] if mix else 'no mixture'}, the pin is {fingerprint[:12]}",
            "check out the release's revision and build it, or export a pin of what stands",
        )
    corpus = Staged.of_steps(project, steps_until("pack"))
    for unit in corpus.units("normalize/text"):
        why = corpus.table("tokenize/tokens", ["reason"], unit)["reason"].to_pylist()
        split = corpus.table("pack/splits", ["split"], unit)["split"].to_pylist()
        rows = corpus.table("normalize/text", COLUMNS, unit).to_pylist()
        cuts = spans(corpus, unit)
        found = [
            row | {"text": excise(row["text"], cuts.get(at, ())).text if why[at] is None else row["text"]}
            | {"split": split[at], "reason": why[at]}
            for at, row in enumerate(rows)
            if reasons or why[at] is None
        ]  # fmt: skip
        yield KINDS[kind](folder / f"{unit}.{kind}", found)


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> int:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return len(rows)


def _parquet(path: Path, rows: list[dict[str, Any]]) -> int:
    schema = pa.schema([(name, pa.large_string()) for name in (*COLUMNS, "split", "reason")])
    pq.write_table(pa.Table.from_pylist(rows, schema), path, compression="zstd")
    return len(rows)


KINDS = {"jsonl": _jsonl, "parquet": _parquet}
