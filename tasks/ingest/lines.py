"""JSON objects of a file of lines as documents, many at a time, with few Python objects for each.

In: a stretch of records. Out: what tasks.ingest.fields makes of those with a text in `text` or `content`; which others
it must look at. The text is taken out of the bytes of each (tasks.text.json_texts), orjson reads what is left of all of
them at once. A test holds both ways against each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from tasks.ingest.known import SHAPES, Known, are_utf8, documents_of, emptied, ids_of, whole_texts
from tasks.ingest.parsing import EXACT, canonical, largest_float
from tasks.ingest.refusals import Reject
from tasks.ingest.scans import Stretch
from tasks.text.json_texts import OTHER, Taken, take_texts

Facts = tuple[str | None, str | None, str | None]
_CARE = frozenset({float, dict, list})
_SORTED = orjson.OPT_SORT_KEYS


def quick_lines(stretch: Stretch, source: str, kind: str, most: int | None) -> Known:
    """The records of a stretch, none of which is above the limit; most: characters of a text that is not cut."""
    taken = take_texts(np.frombuffer(stretch.held, np.uint8), stretch.offsets, stretch.sizes)
    buffers = [pa.py_buffer(taken.offsets_R1), pa.py_buffer(taken.texts)]
    texts = pa.LargeStringArray.from_buffers(len(stretch.sizes), *buffers)
    known = are_utf8(texts)
    facts = [_facts(record, name) for record, name in zip(_left(taken), taken.kinds_R.tolist(), strict=True)]
    known &= [fact is not None for fact in facts]
    texts = emptied(texts, known)
    known &= whole_texts(texts, kind == "code", most)
    columns = zip(*(fact or (None, None, None) for fact in facts), strict=True)
    named = zip(("url", "created", "metadata"), columns, strict=True)
    others = {name: pa.array(values, pa.string()) for name, values in named}
    table = documents_of(source, kind, ids_of(stretch.digests), {"text": texts, **others})
    return Known(table, stretch.sizes, known, taken.kinds_R)


def _left(taken: Taken) -> Iterator[Any]:
    """What is left of each record, parsed; None of those that are to be looked at."""
    rest = taken.rest.tobytes()
    try:
        yield from orjson.loads(rest) if rest else []
    except orjson.JSONDecodeError:
        places = taken.places_R1.tolist()
        yield from (_parsed(rest[begin + 1 : end]) for begin, end in pairwise(places))


def _parsed(record: bytes) -> Any:
    try:
        return orjson.loads(record)
    except orjson.JSONDecodeError:
        return None


def _facts(record: dict[str, Any] | None, kind: int) -> Facts | None:
    """url, created and metadata of a record whose text was taken out; None where the long way must look."""
    if record is None or kind == OTHER:
        return None
    del record[SHAPES[kind]]
    url = record.pop("url") if type(record.get("url")) is str else None
    created = record.pop("created") if type(record.get("created")) is str else None
    if not record:
        return url, created, None
    if _CARE.isdisjoint(map(type, record.values())):
        return url, created, orjson.dumps(record, option=_SORTED).decode()
    most = largest_float(record)
    if most is not None and most >= EXACT:
        return None
    try:
        return url, created, canonical(record, most is None)
    except Reject:
        return None
