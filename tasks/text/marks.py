"""Counts over the characters of a text: classes, sentences, links, and words that betray boilerplate.

In: UTF-8 texts as Arrow holds them. Out: one row of exact counts a text. It knows no words and makes no strings.

*Sentence*: a stretch of a line with a letter or digit in it, up to a terminal mark behind which, closing quotes and
brackets aside, a blank or the line's end follows (。！？ need none), or up to the line's end. No list of abbreviations:
"Mr. Hart" ends one (NLTK's Punkt, which C4's peers use, knows some).
*Ellipses*: each … and each three dots in a row, as `text.count("...")`.
*Link*: from http://, https:// or www. (with no letter or digit before it) over printable ASCII but <>"`{}|\\^.
*Phrases*, small or capital (ASCII): "lorem ipsum" by occurrence; "javascript" and C4's six policy phrases by line, a
line counting once.

Speed: 390 MB of English a CPU second (one core, 2026).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from tasks.text.characters import CLOSING, FULL, PRIVATE, REPLACEMENT, TERMINAL, WHITE, character_bits

NAMES = (
    "letters", "digits", "punctuation", "hashes", "ellipses", "braces", "sentences", "newlines", "url_characters",
    "lorem_ipsum", "javascript_lines", "policy_lines", "replacements", "privates",
)  # fmt: skip
_LETTERS, _DIGITS, _PUNCTUATION, _HASHES, _ELLIPSES, _BRACES, _SENTENCES, _NEWLINES, _URLS = range(9)
_LOREM, _SCRIPTS, _POLICIES, _REPLACEMENTS, _PRIVATES = range(9, 14)
_SAID, _SCRIPT_HERE, _POLICY_HERE, _URL_STOP, _COLUMNS = range(14, 19)  # of the open sentence, line and link
_RUN = 1 << 20  # characters whose classes are summed in lanes of 21 bits before they are carried over
_LANE, _SECOND, _THIRD = np.uint64((1 << 21) - 1), np.uint64(21), np.uint64(42)
_LOOK, _CLASSES, _NEXT, _TWO = np.uint64(1 << 63), np.uint64((1 << 63) - 1), np.uint64(1), np.uint64(2)
_CASE = np.uint8(32)
_SPECIAL, _RARE_LETTERS = b"\n.!?#{}:", b"jkvfpJKVFP"
_PHRASES = "lorem ipsum|javascript|terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"
_LOREM_IPSUM, _JAVASCRIPT, _TERMS, _PRIVACY, _COOKIE_POLICY, _USES_COOKIES, _USE_OF_COOKIES, _USE_COOKIES = (
    np.frombuffer(phrase.encode(), np.uint8) for phrase in _PHRASES.split("|")
)
Array = np.ndarray


def count_marks(offsets_D1: Array, data: Array) -> tuple[dict[str, Array], Array]:
    """(int64 [D] of each of NAMES, places of all line feeds [N]) of the texts data[offsets_D1[d]:offsets_D1[d + 1]].

    url_characters: characters in links; replacements: U+FFFD; privates: private use; braces: { and }.
    """
    rows_DK = np.zeros((len(offsets_D1) - 1, _COLUMNS), np.int64)
    bits = character_bits()
    lanes = (_lanes(_SPECIAL), _lanes(_SPECIAL + _RARE_LETTERS))
    masks = (TERMINAL, FULL, CLOSING, WHITE, PRIVATE, REPLACEMENT)
    breaks_N = np.empty(np.count_nonzero(data[offsets_D1[0] : offsets_D1[-1]] == 10), np.int64)
    _count(data, offsets_D1, bits, lanes, masks, rows_DK, breaks_N)
    return {name: rows_DK[:, place].copy() for place, name in enumerate(NAMES)}, breaks_N


@cache
def _lanes(special: bytes) -> Array:
    """uint64 [256]: letter, digit, punctuation in 21 bits each, and one where there is more to be looked at."""
    lanes, bits = np.zeros(256, np.uint64), character_bits()
    for place in range(3):
        lanes[:128] |= ((bits[:128] >> place) & 1).astype(np.uint64) << np.uint64(21 * place)
    lanes[list(special)] |= _LOOK
    lanes[128:] = _LOOK
    return lanes


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _count(
    data: Array, offsets_D1: Array, bits: Array, both_lanes: Any, masks: Any, rows_DK: Array, breaks_N: Array
) -> None:
    rare, breaks = masks[0] | masks[4] | masks[5], 0
    for text in range(len(offsets_D1) - 1):
        begin, stop, row = offsets_D1[text], offsets_D1[text + 1], rows_DK[text]
        lanes = both_lanes[1] if _may_hold_phrases(data[begin:stop]) else both_lanes[0]
        at, carried, packed, row[_URL_STOP] = begin, begin, np.uint64(0), begin
        while at < stop:
            limit = min(stop, carried + _RUN)
            at, packed = _plain(data, at, limit, lanes, packed)
            if at >= limit:
                _carry(packed, row)
                carried, packed = at, np.uint64(0)
            elif data[at] == 10:
                breaks_N[breaks], breaks, at = at, breaks + 1, at + 1
                row[_NEWLINES] += 1
                _end_line(packed, row)
            elif data[at] < 0x80:
                packed += lanes[data[at]] & _CLASSES
                _look(data, begin, at, stop, bits, masks, packed, row)
                at += 1
            while at < limit and data[at] >= 0x80:
                code, size = _decode(data, at, stop)
                found = np.uint64(bits[code])
                packed += found & _NEXT | (found >> _NEXT & _NEXT) << _SECOND | (found >> _TWO & _NEXT) << _THIRD
                at += size
                if found & np.uint64(rare):
                    _look_wide(data, at, stop, code, bits, masks, packed, row)
        _carry(packed, row)
        _end_line(np.uint64(0), row)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _may_hold_phrases(span: Array) -> bool:
    """Whether "javas", "ipsum", "f use", "rivac" or "ookie" stands in the span: most texts then need not stop at every
    letter that may belong to a phrase, which would take half of all time."""
    most, found = max(0, len(span) - 4), np.uint8(0)
    a, b, c, d, e = (span[:most], span[1 : most + 1], span[2 : most + 2], span[3 : most + 3], span[4 : most + 4])
    for at in range(most):
        v, w, x, y, z = a[at] | _CASE, b[at] | _CASE, c[at] | _CASE, d[at] | _CASE, e[at] | _CASE
        found |= np.uint8((v == 106) & (w == 97) & (x == 118) & (y == 97) & (z == 115))
        found |= np.uint8((v == 105) & (w == 112) & (x == 115) & (y == 117) & (z == 109))
        found |= np.uint8((v == 102) & (w == 32) & (x == 117) & (y == 115) & (z == 101))
        found |= np.uint8((v == 114) & (w == 105) & (x == 118) & (y == 97) & (z == 99))
        found |= np.uint8((v == 111) & (w == 111) & (x == 107) & (y == 105) & (z == 101))
    return bool(found)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _plain(data: Array, at: int, limit: int, lanes: Array, packed: np.uint64) -> Any:
    """(where the first character that is to be looked at, or `limit`, is; lanes summed up to there). Unsigned places
    save numba its test for negative ones, a third of the time."""
    place, stop = np.uint64(at), np.uint64(limit)
    while place < stop:
        lane = lanes[data[place]]
        if lane & _LOOK:
            break
        packed += lane
        place += _NEXT
    return np.int64(place), packed


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _carry(packed: np.uint64, row: Array) -> None:
    row[_LETTERS] += np.int64(packed & _LANE)
    row[_DIGITS] += np.int64((packed >> _SECOND) & _LANE)
    row[_PUNCTUATION] += np.int64(packed >> _THIRD)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look(data: Array, begin: int, at: int, stop: int, bits: Array, masks: Any, packed: np.uint64, row: Array) -> None:
    """What there is to an ASCII character besides its class."""
    byte = data[at]
    if byte > 64 and byte != 123 and byte != 125:
        _phrases(data, begin, at, stop, byte | 32, row)
    elif byte == 46:
        if at == begin or data[at - 1] != 46:
            row[_ELLIPSES] += _dots(data, at, stop) // 3
        if at > begin and data[at - 1] | 32 == 119:  # w
            _link(data, begin, at, stop, at - 3, bits, row)
        _end_sentence(data, at + 1, stop, bits, masks, packed, row)
    elif byte == 33 or byte == 63:
        _end_sentence(data, at + 1, stop, bits, masks, packed, row)
    elif byte == 35:
        row[_HASHES] += 1
    elif byte == 58 and at + 2 < stop and data[at + 1] == 47:
        _link(data, begin, at, stop, at - 4, bits, row)
        _link(data, begin, at, stop, at - 5, bits, row)
    elif byte != 58:
        row[_BRACES] += 1


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _look_wide(
    data: Array, after: int, stop: int, code: int, bits: Array, masks: Any, packed: np.uint64, row: Array
) -> None:
    """What there is to another character, behind which `after` is."""
    terminal, full, _, _, private, replacement = masks
    found = bits[code]
    row[_ELLIPSES] += code == 0x2026
    if found & full:
        _close(packed, row)
    elif found & terminal:
        _end_sentence(data, after, stop, bits, masks, packed, row)
    row[_PRIVATES] += (found & private) != 0
    row[_REPLACEMENTS] += (found & replacement) != 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _end_sentence(data: Array, at: int, stop: int, bits: Array, masks: Any, packed: np.uint64, row: Array) -> None:
    """Close the sentence if a blank or the end follows `at`, further marks and closing ones passed over."""
    terminal, full, closing, white, _, _ = masks
    while at < stop:
        code, size = _decode(data, at, stop)
        if bits[code] & white:
            break
        if not bits[code] & (terminal | closing) or bits[code] & full:
            return
        at += size
    _close(packed, row)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _close(packed: np.uint64, row: Array) -> None:
    """End the sentence, if a letter or digit stands in it; `packed`: of the classes not carried into the row yet."""
    said = row[_LETTERS] + row[_DIGITS] + np.int64(packed & _LANE) + np.int64((packed >> _SECOND) & _LANE)
    row[_SENTENCES] += said > row[_SAID]
    row[_SAID] = said


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _end_line(packed: np.uint64, row: Array) -> None:
    _close(packed, row)
    row[_SCRIPTS] += row[_SCRIPT_HERE]
    row[_POLICIES] += row[_POLICY_HERE]
    row[_SCRIPT_HERE], row[_POLICY_HERE] = 0, 0


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _dots(data: Array, at: int, stop: int) -> int:
    start = at
    while at < stop and data[at] == 46:
        at += 1
    return at - start


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _phrases(data: Array, begin: int, at: int, stop: int, letter: int, row: Array) -> None:
    """Each phrase is looked for at its rarest letter, and only where the letters beside it fit."""
    if at == begin or at + 2 >= stop:
        row[_SCRIPT_HERE] |= letter == 106 and _stands(data, begin, at, stop, _JAVASCRIPT)
        return
    before, after, later = data[at - 1] | 32, data[at + 1] | 32, data[at + 2] | 32
    if letter == 106 and after == 97 and later == 118:  # j
        row[_SCRIPT_HERE] |= _stands(data, begin, at, stop, _JAVASCRIPT)
    elif letter == 112 and before == 105 and after == 115:  # p; "privacy policy" is found by its v
        row[_LOREM] += _stands(data, begin, at - 7, stop, _LOREM_IPSUM)
    elif letter == 102 and before == 111 and after == 32 and later == 117:  # f
        row[_POLICY_HERE] |= _stands(data, begin, at - 7, stop, _TERMS)
    elif letter == 118 and before == 105 and after == 97:  # v
        row[_POLICY_HERE] |= _stands(data, begin, at - 3, stop, _PRIVACY)
    elif letter == 107 and before == 111 and after == 105:  # k
        row[_POLICY_HERE] |= _cookies(data, begin, at, stop)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _cookies(data: Array, begin: int, at: int, stop: int) -> bool:
    return bool(
        _stands(data, begin, at - 3, stop, _COOKIE_POLICY)
        or _stands(data, begin, at - 8, stop, _USES_COOKIES)
        or _stands(data, begin, at - 10, stop, _USE_OF_COOKIES)
        or _stands(data, begin, at - 7, stop, _USE_COOKIES)
    )


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _stands(data: Array, begin: int, at: int, stop: int, phrase: Array) -> bool:
    """Whether `phrase` (small letters) stands at `at`, in small or capital letters."""
    if at < begin or at + len(phrase) > stop:
        return False
    for place in range(len(phrase)):
        byte = data[at + place]
        if byte != phrase[place] and (byte | 32 != phrase[place] or not 65 <= byte <= 90):
            return False
    return True


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _link(data: Array, begin: int, at: int, stop: int, start: int, bits: Array, row: Array) -> None:
    """Count a link that begins at `start` and has its first : or . at `at`, if there is one."""
    if start < row[_URL_STOP] or start < begin or not _opens(data, start, at, stop):
        return
    if start > begin and data[start - 1] < 0x80 and bits[data[start - 1]] & 3:
        return
    end = at
    while end < stop and _in_link(data[end]):
        end += 1
    row[_URLS] += end - start
    row[_URL_STOP] = end


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _opens(data: Array, start: int, at: int, stop: int) -> bool:
    if data[at] == 46:
        return bool((data[start] | 32) == 119 and (data[start + 1] | 32) == 119 and (data[start + 2] | 32) == 119)
    if at + 2 >= stop or data[at + 1] != 47 or data[at + 2] != 47 or (at - start == 5 and (data[at - 1] | 32) != 115):
        return False
    http = (data[start] | 32) == 104 and (data[start + 1] | 32) == 116 and (data[start + 2] | 32) == 116
    return bool(http and (data[start + 3] | 32) == 112)


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _in_link(byte: int) -> bool:
    return bool(32 < byte < 127 and byte not in (34, 60, 62, 92, 94, 96, 123, 124, 125))


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _decode(data: Array, at: int, stop: int) -> tuple[Any, int]:
    """(code point, bytes) of the character at `at` of valid UTF-8."""
    first = np.int64(data[at])
    if first < 0x80 or at + 1 >= stop:
        return first, 1
    if first < 0xE0:
        return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), 2
    if first < 0xF0:
        high = (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6
        return high | (np.int64(data[at + 2]) & 0x3F), 3
    high = (first & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
    return high | (np.int64(data[at + 2]) & 0x3F) << 6 | (np.int64(data[at + 3]) & 0x3F), 4
