"""A tokenizer.json as seams and merges: what tasks.segmented needs to give the ids of Hugging Face's tokenizers.

In: the file and the library's own object. Out: the ids of segments. It holds for byte-level BPE behind one of the
expressions of KNOWN; any other is encoded by its library whole.

KNOWN expressions cut text into words that no merge leaves. All of them end a match after the last letter of a run (but
for an apostrophe, which may begin an ending), and before the last space of a run that follows what is not white: that
is where tasks.text.seams.WORD_SEAMS cuts. Neither NFC nor NFKC joins an ASCII character to what stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from tasks.character_kinds import CharacterKinds
from tasks.subwords import LONG, Subwords
from tasks.text.byte_level_words import simple, word_stops
from tasks.text.merging import Merges, with_others
from tasks.text.seams import WORD_SEAMS, Seams

Array = np.ndarray[Any, Any]

_ENDINGS = r"'s|'t|'re|'ve|'m|'ll|'d"
GPT2 = _ENDINGS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_MODERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|NUMBER| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3, QWEN = _MODERN.replace("NUMBER", r"\p{N}{1,3}"), _MODERN.replace("NUMBER", r"\p{N}")
DIGITS = {GPT2: 0, LLAMA3: 3, QWEN: 1}
"""Digits that a word may have; 0 for any number."""
KNOWN = frozenset(
    [
        GPT2,
        LLAMA3,
        QWEN,
        # as tiktoken writes those of r50k and p50k, of cl100k, and of o200k
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
        r"\s+(?!\S)|\s",
        "|".join(
            [
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            ]
        ),
    ]
)
NORMAL_FORMS = ("NFC", "NFKC", "NFD", "NFKD")
SPELLED_OTHERWISE = ("\u212a", "\u212b", "\u037e", "\u1fef", "\u2126")
"""Characters that NFC turns into a letter or mark of their own: an added token might be spelled with them."""


class ByteWords:
    """The ids of segments by merges of bytes.

    alone: texts with one of these go to the library whole. seams: where segments begin: within words, or, where added
    tokens may stand in a text or whole words go before merges, where every expression ends a match. pieces: the bytes
    of each, and its id.
    """

    def __init__(
        self, library: Any, content: Mapping[str, Any], pattern: str, pairs: Sequence[tuple[str, str]]
    ) -> None:
        model = content["model"]
        self._library, self._modern, self._digits = library, pattern != GPT2, DIGITS[pattern]
        self._kinds = CharacterKinds(library.pre_tokenizer, self._modern, self._digits, library.normalizer)
        self._numbers = {name: model["vocab"][name] for name in _byte_names() if name in model["vocab"]}
        self._symbols = np.array([self._numbers.get(name, -1) for name in _byte_names()], np.int32)
        self._merges = _merges(model, pairs)
        self.pieces = pieces_of(model["vocab"])
        self._vocabulary = model["vocab"] if model.get("ignore_merges") and self._apart(self.pieces) else {}
        added = _added(content)
        crossed = [text for text in added if _has_seam(text)]
        self.alone = [*crossed, *(SPELLED_OTHERWISE if added and content.get("normalizer") else ())]
        self._added = {text: model["vocab"].get(text, -1) for text in added if text not in crossed}
        self._added |= {
            token["content"]: token["id"]
            for token in content.get("added_tokens") or []
            if token["content"] in self._added
        }
        longest_first = sorted(self._added, key=lambda text: (-len(text), text))
        within = "(" + "|".join(map(re.escape, longest_first)) + ")"
        self._within, self._spelled = re.compile(within) if self._added else None, re.compile(within.encode())
        self._subwords = None if self._added or self._vocabulary else self._cut_further(self.pieces)
        self.seams: Seams = self._subwords or WORD_SEAMS

    def _cut_further(self, pieces: Mapping[bytes, int]) -> Subwords:
        how = (self._modern, self._digits)
        return Subwords(self._kinds, how, pieces, self._symbols, self._merges, self._slowly, self._merged)

    def _apart(self, pieces: Mapping[bytes, int]) -> bool:
        """Whether a piece that can be a whole word is none that its bytes merge to."""
        data, ends = np.frombuffer(b"".join(pieces), np.uint8), np.cumsum([len(piece) for piece in pieces])
        ids, sizes = self._merges.merged(self._symbols[data], ends)
        first = ids[np.minimum(np.cumsum(sizes) - sizes, len(ids) - 1)]
        odd = np.flatnonzero((sizes != 1) | (first != list(pieces.values()))).tolist()
        spelled = [list(pieces)[at].decode("utf-8", "replace") for at in odd]
        return any(len(self._library.pre_tokenizer.pre_tokenize_str(text)) == 1 for text in spelled)

    def learn(self, data: Array, stops: Array) -> tuple[Array, Array]:
        """(ids int32, ids of each segment int64)."""
        if self._subwords is not None:
            return self._subwords.learn(data, stops)
        if not len(stops):
            return np.empty(0, np.int32), np.empty(0, np.int64)
        spelled, kinds = data.tobytes(), self._kinds.of(data)[0]
        fast = self._told(spelled, data, kinds, stops)
        borders, known = self._parts(spelled, stops, fast)
        part_of = np.searchsorted(stops, borders)
        chosen = fast[part_of]
        chosen[list(known)] = False
        begins = stops - np.diff(stops, prepend=0)
        slow = np.flatnonzero(~fast).tolist()
        others = self._slowly([spelled[begins[at] : stops[at]] for at in slow])
        known |= dict(zip(np.searchsorted(borders, stops[slow]).tolist(), others, strict=True))
        ids, sizes = with_others(*self._fast(data, kinds, borders, chosen), known)
        return ids, np.diff(
            np.concatenate([[0], np.cumsum(sizes)])[np.searchsorted(part_of, np.arange(len(stops) + 1))]
        )

    def _told(self, spelled: bytes, data: Array, kinds: Array, stops: Array) -> Array:
        """Which segments are cut into words here, bool [m]: none with a character that the library alone knows, beyond
        ASCII none that holds an added token, and none with a word above LONG."""
        if self._vocabulary:
            return np.zeros(len(stops), bool)
        fast, begins = simple(kinds, stops), stops - np.diff(stops, prepend=0)
        if self._within is not None:
            for at in np.flatnonzero((np.maximum.reduceat(data, begins) > 127) & fast).tolist():
                fast[at] = self._within.search(spelled[begins[at] : stops[at]].decode()) is None
        long = fast & (stops - begins > LONG)
        if long.any():
            ends, _ = word_stops(data, kinds, stops, long, self._modern, self._digits)
            starts = np.maximum(np.concatenate([[0], ends[:-1]]), begins[np.searchsorted(stops, ends)])
            fast[np.searchsorted(stops, ends[ends - starts > LONG])] = False
        return fast

    def _parts(self, spelled: bytes, stops: Array, fast: Array) -> tuple[Array, dict[int, list[int]]]:
        """(where the parts of all segments end, ids of the parts that are added tokens): those of fast segments are
        taken out of them, the longest first where several begin."""
        if self._within is None:
            return stops, {}
        places = [found.start() for found in self._within_bytes.finditer(spelled)]
        held = np.unique(np.searchsorted(stops, places, "right"))
        found = list[tuple[int, int, int]]()
        for at in held[fast[held]].tolist():
            begin = int(stops[at - 1]) if at else 0
            for match in self._spelled.finditer(spelled[begin : stops[at]]):
                found.append((begin + match.start(), begin + match.end(), self._added[match.group().decode()]))
        if not found:
            return stops, {}
        cuts = np.array(found)
        borders = np.unique(np.concatenate([stops, cuts[:, 0], cuts[:, 1]]))
        borders = borders[borders > 0]
        return borders, dict(zip(np.searchsorted(borders, cuts[:, 1]).tolist(), cuts[:, 2:].tolist(), strict=True))

    def _fast(self, data: Array, kinds: Array, borders: Array, chosen: Array) -> tuple[Array, Array]:
        """(ids, how many of each part) of the chosen parts; the others have none yet."""
        ends, counts = word_stops(data, kinds, borders, chosen, self._modern, self._digits)
        kept = np.repeat(chosen, np.diff(borders, prepend=0))
        ids, each = self._merges.merged(self._symbols[data[kept]], np.cumsum(kept)[ends - 1])
        return ids, np.diff(np.concatenate([[0], np.cumsum(each)])[np.concatenate([[0], np.cumsum(counts)])])

    @cached_property
    def _within_bytes(self) -> re.Pattern[bytes]:
        """Finds every place where an added token may begin."""
        return re.compile(b"(?=" + b"|".join(re.escape(text.encode()) for text in sorted(self._added)) + b")")

    def _merged(self, parts: Sequence[bytes]) -> list[list[int]]:
        """The ids of long parts of words, by the library's merges."""
        names = _byte_names()
        spelled = ("".join(names[byte] for byte in part) for part in parts)
        return [[token.id for token in self._library.model.tokenize(word)] for word in spelled]

    def _slowly(self, spelled: Sequence[bytes]) -> list[list[int]]:
        """The ids of segments with other characters, or with added tokens."""
        symbols, ends, counts = list[int](), list[int](), list[int]()
        whole: dict[int, list[int]] = {}
        for at, segment in enumerate(part.decode() for part in spelled):
            words = self._words(segment)
            if words is None:
                whole[at] = self._library.encode(segment, add_special_tokens=False).ids
            for word in words or ():
                known = word if isinstance(word, int) else self._vocabulary.get(word)
                symbols.extend([known] if known is not None else map(self._numbers.__getitem__, str(word)))
                ends.append(len(symbols))
            counts.append(len(words or ()))
        ids, sizes = self._merges.merged(np.array(symbols, np.int32), np.array(ends, np.int64))
        of_words = np.concatenate([[0], np.cumsum(sizes)])
        borders = of_words[np.concatenate([[0], np.cumsum(np.array(counts, np.int64))])].tolist()
        flat = ids.tolist()
        return [whole.get(at, flat[first:last]) for at, (first, last) in enumerate(pairwise(borders))]

    def _words(self, segment: str) -> list[str | int] | None:
        """Each word as the vocabulary spells its bytes, or an added token's id; None where the library is to say."""
        parts = [segment] if self._within is None else self._within.split(segment)
        if len(parts) > 1 and not segment.isascii():
            return None
        words = list[str | int]()
        for at, part in enumerate(parts):
            words += [self._added[part]] if at % 2 else self._named(part) if part else []
        return words if max((len(word) for word in words if isinstance(word, str)), default=0) <= LONG else None

    def _named(self, part: str) -> list[str]:
        normalizer = self._library.normalizer
        normal = part if normalizer is None else normalizer.normalize_str(part)
        return [word for word, _ in self._library.pre_tokenizer.pre_tokenize_str(normal)]


def byte_words(library: Any, content: Mapping[str, Any]) -> ByteWords | None:
    """None where the tokenizer is not of the kind that this holds for."""
    pattern, model = _pattern(content.get("pre_tokenizer")), content["model"]
    plain = model.get("type") == "BPE" and not model.get("dropout") and not model.get("byte_fallback")
    plain = plain and not model.get("continuing_subword_prefix") and not model.get("end_of_word_suffix")
    added = content.get("added_tokens") or []
    moved = any(token[flag] for token in added for flag in ("single_word", "lstrip", "rstrip") if not token["special"])
    normal = (content.get("normalizer") or {}).get("type", "NFC") in NORMAL_FORMS
    if pattern is None or not plain or moved or not normal or not all(name in model["vocab"] for name in _used_names()):
        return None
    pairs = _pairs(model)
    return ByteWords(library, content, pattern, pairs) if len(set(pairs)) == len(pairs) else None


def _pattern(before: Mapping[str, Any] | None) -> str | None:
    """The expression that cuts text into words, where it is one of KNOWN and nothing else does."""
    match before:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}:
            return None
        case {"type": "ByteLevel", "add_prefix_space": False}:
            return GPT2
        case {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": str(found)}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        } if found in (GPT2, LLAMA3, QWEN):
            return found
    return None


@cache
def _byte_names() -> tuple[str, ...]:
    """The character that stands for each byte in byte-level vocabularies (GPT-2): itself where it shows, else the next
    one from U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in shown else chr(next(others)) for byte in range(256))


def _used_names() -> list[str]:
    """Without bytes that no UTF-8 has."""
    return [name for byte, name in enumerate(_byte_names()) if byte not in (0xC0, 0xC1) and byte < 0xF5]


def pieces_of(vocabulary: Mapping[str, int]) -> dict[bytes, int]:
    """The bytes that each piece spells, but for those that are none of bytes, and its id."""
    names = _byte_names()
    spelled, apart = "\u0144".join(vocabulary), set("".join(vocabulary)).difference(names)
    if apart:
        kept = {piece: number for piece, number in vocabulary.items() if not apart.intersection(piece)}
        return pieces_of(kept)
    parts = spelled.translate(dict(zip(map(ord, names), map(chr, range(256)), strict=True))).split("\u0144")
    return {part.encode("latin-1"): number for part, number in zip(parts, vocabulary.values(), strict=True) if part}


def _pairs(model: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]


def _merges(model: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> Merges:
    sides = list(zip(*pairs, strict=True)) or [(), ()]
    spelled = (*sides, map(add, *sides))
    left, right, joined = (np.fromiter(map(model["vocab"].__getitem__, each), np.int64, len(pairs)) for each in spelled)
    return Merges(left, right, joined, np.arange(len(pairs), dtype=np.int32))


def _added(content: Mapping[str, Any]) -> list[str]:
    """Added tokens that text becomes."""
    return sorted(token["content"] for token in content.get("added_tokens") or [] if not token["special"])


def _has_seam(text: str) -> bool:
    data = np.frombuffer(text.encode(), np.uint8)
    return len(WORD_SEAMS.starts(data, np.array([0, len(data)]))) > 1
