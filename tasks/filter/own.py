"""data/filter/own: signals that Gristmill does not know: the user's functions and fastText models, and metadata.

In: the text and metadata of a part, the user's Python files beside params.yaml and models. Out: a float64 column for
each, row-aligned, null where a document has no such number. It judges nothing.

A function takes the texts as one pyarrow array of large_string and gives back a pyarrow array of as many numbers. Its
file's digest is in the key, and so are those of the files beside it that it names in DATA_FILES = ("model.json",); what
it imports or reads besides is not. A model (.bin or .ftz, its digest in the key) gives the probability of one label.
"""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import ParamsError
from tasks.step import Made, Reads
from tasks.text.classifier import load_classifier
from tasks.text.scoring import label_scores
from tasks.text.words import one_array, text_buffers

if TYPE_CHECKING:
    from tasks.filter import FilterParams

METADATA = "metadata."
DECIMALS = 6
"""Of a model's probability, so that it is the same on another machine."""


class Spelled(NamedTuple):
    """One of params.signals. source: its module's name, or its model's path; what: function or label."""

    name: str
    source: str
    what: str
    is_model: bool

    @classmethod
    def of(cls, spelled: str) -> Spelled:
        first, _, rest = spelled.partition(":")
        path, between, label = rest.partition(":")
        if not between:
            return cls(rest, first, rest, False)
        what, _, name = label.partition("=")
        return cls(name or what, path, what, True)


def make(reads: Reads, params: FilterParams) -> Made:
    """The own signals of one part: params.signals and params.metadata (fields, dots lead into objects)."""
    columns: dict[str, pa.Array] = {}
    if params.signals:
        texts = one_array(reads.table("normalize/text", ["text"])["text"])
        for item in params.signals:
            signal = Spelled.of(item)
            found = _scored if signal.is_model else _called
            columns[signal.name] = found(reads.path(signal.source), signal, texts)
    if params.metadata:
        records = [
            json.loads(item or "{}") for item in reads.table("normalize/text", ["metadata"])["metadata"].to_pylist()
        ]
        for field in params.metadata:
            columns[METADATA + field] = pa.array([_number(record, field) for record in records], pa.float64())
    return Made({".parquet": pa.table(columns)})


def _scored(path: Path, signal: Spelled, texts: pa.LargeStringArray) -> pa.Array:
    """The model's probability of a label, rounded; null of texts in which it knows nothing."""
    try:
        model = load_classifier(path)
    except ValueError as error:
        raise ParamsError(f"{signal.source}, which filter.signals names: {error}", "name a classifier") from None
    if signal.what not in model.labels:
        known = ", ".join(model.labels[:20])
        raise ParamsError(f"{signal.source} has no label {signal.what}", f"its labels are {known}")
    scores_D = np.round(label_scores(*text_buffers(texts), model, signal.what), DECIMALS)
    return pa.array(scores_D, mask=np.isnan(scores_D))


def _called(path: Path, signal: Spelled, texts: pa.LargeStringArray) -> pa.Array:
    """What the function gives for the texts; raises ParamsError where it is no function or gives no such column."""
    spelled, found = f"{signal.source}:{signal.what}", getattr(_loaded(path), signal.what, None)
    if not callable(found):
        raise ParamsError(f"filter.signals names {spelled}, but {path.name} has no such function", "correct the name")
    column = found(texts)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    mend = "give back a pyarrow array with a number, or null, for each text"
    if not isinstance(column, pa.Array) or len(column) != len(texts):
        size = f"{len(column)} values" if isinstance(column, pa.Array) else type(column).__name__
        raise ParamsError(f"{spelled} gave {size} for {len(texts)} texts", mend)
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowException as error:
        raise ParamsError(f"{spelled} gave {column.type}, which is no number: {error}", mend) from None
    if len(numbers) and pc.any(pc.is_nan(numbers)).as_py():
        raise ParamsError(f"{spelled} gave NaN, which no limit can hold", mend)
    return numbers


def _loaded(path: Path) -> Any:
    """The user's file as a module, under a name that nothing else has."""
    spec = importlib.util.spec_from_file_location(f"gristmill_own_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ParamsError(f"{path.name} is no Python file", "name a file beside params.yaml, without its .py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _number(record: Any, field: str) -> float | None:
    """The number at a dotted path of a record; None where there is none."""
    for name in field.split("."):
        record = record.get(name) if isinstance(record, dict) else None
    if not isinstance(record, int | float) or not math.isfinite(record):
        return None
    return float(record)
