"""JSON as RFC 8259 has it, from bytes to a value and from a value to canonical bytes.

NaN, Infinity and numbers beyond 64-bit floats are refused; of equal keys the last one holds. A lone surrogate (\\ud83d
without its half) stands for no character and is refused here, since every later stage would stumble over it.

orjson parses, at three times json's speed. It makes floats of whole numbers beyond 64 bits and of numbers beyond
floats: where a large float is found, and where orjson refuses, json parses again, so that values and messages are
json's.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson

from tasks.ingest.refusals import Reject

SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
EXACT = 1e18
"""Floats below it may have been nothing but floats: every whole number up to there is one of 64 bits."""

_DEEP = "its brackets are nested too deeply, about 1,000 is the most"


def parsed(raw: bytes) -> Any:
    """The value of a record. Raises Reject: encoding, json or surrogate."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return exactly_parsed(raw)


def exactly_parsed(raw: bytes) -> Any:
    """The value as json has it, whole numbers of any size included."""
    text = decoded(raw)
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise Reject("json", _DEEP) from None
    except ValueError as error:
        raise Reject("json", " ".join(str(error).split())[:300]) from None
    if SURROGATE.search(raw):
        _refuse_surrogates(value)
    return value


def decoded(raw: bytes) -> str:
    """UTF-8 as text. Raises Reject: encoding."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        raise Reject("encoding", f"byte {error.start} (0x{byte:02x}) is not UTF-8: {error.reason}") from None


def canonical(value: dict[str, Any], without_floats: bool) -> str:
    """JSON with sorted keys and no spaces: the bytes of json, made by orjson where there are no floats."""
    try:
        if without_floats:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError):
        pass
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise Reject("json", _DEEP) from None


def largest_float(value: Any) -> float | None:
    """The largest absolute value of the floats in `value`, None where there is none."""
    if isinstance(value, float):
        return abs(value)
    most = None
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(item, (float, dict, list)):
            inner = largest_float(item)
            most = inner if most is None or (inner is not None and inner > most) else most
    return most


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        raise Reject("surrogate", f"it holds U+{code:04X}, half of a character without its other half") from None


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:40]} is beyond 64-bit floats")
    return number


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_float)
