"""Rows to ids: what is encoded now, what stands already, and the checks that both must pass.

In: documents, chats as their template writes them, and the ids of the part as it stands. Out: the ids of all rows in
turn. It reads no verdict and writes no table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tasks.artifacts.tokens import token_dtype
from tasks.encoder import Tokenizer
from tasks.errors import InvariantError, TokenizerError
from tasks.segmented import BATCH_BYTES
from tasks.step import Reads
from tasks.text.closing import put_closed
from tasks.texts import as_texts
from tasks.tokenize.chats import Span, encode_chats
from tasks.tokenize.documents import Documents

ROWS_WHOLE, ROWS_BEGUN, IDS_BEGUN = 8, 32, 4096
"""Rows of each part, evenly spaced among those encoded, that are decoded again: so many whole, and so many ids at most
of more, since a few books are as long as all else. Judges, shapes no byte."""

Ids = np.ndarray[Any, np.dtype[Any]]


class Encoded(NamedTuple):
    """flat: the ids of all rows, one row after another. sizes int64 [rows]: 0 for a dropped one. loss: uint8, 1 where
    the model learns an id; None where it learns all."""

    flat: Ids
    sizes: Ids
    loss: Ids | None

    def counted(self, flags: Ids) -> Ids:
        """How many of each row's ids have a flag, int64 [rows]."""
        if not flags.any():
            return np.zeros(len(self.sizes), np.int64)
        rows = np.searchsorted(np.cumsum(self.sizes), np.flatnonzero(flags), "right")
        return np.bincount(rows, minlength=len(self.sizes))


class Standing(NamedTuple):
    """The part as it stands: places: row_key -> (start, stop) in flat and loss."""

    places: dict[str, tuple[int, int]]
    flat: Ids
    loss: Ids | None


def standing_rows(reads: Reads, dtype: str, vocab_size: int) -> Standing:
    """The same part made with this code and these parameters; nothing where it does not fit or holds other ids."""
    nothing = Standing({}, np.empty(0, dtype), None)
    before = reads.previous()
    if before is None:
        return nothing
    table = before.table("tokenize/tokens", ["row_key", "tokens", "learnt"])
    tokens, learnt = table["tokens"].to_numpy(), int(table["learnt"].to_numpy().sum())
    flat = before.array("tokenize/tokens", ".bin", dtype)
    if len(flat) != tokens.sum() or (len(flat) and int(flat.max()) >= vocab_size):
        return nothing
    loss = before.array("tokenize/tokens", ".loss", "u1") if learnt < len(flat) else None
    stops = np.cumsum(tokens)
    rows = zip(table["row_key"].to_pylist(), (stops - tokens).tolist(), stops.tolist(), strict=True)
    return Standing({key: (start, stop) for key, start, stop in rows if stop > start}, flat, loss)


def encoded_rows(
    rows: Documents,
    chats: Mapping[int, Sequence[Span]],
    tokenizer: Tokenizer,
    standing: Standing,
    dtype: np.dtype[Any],
    bos_each: bool,
) -> Encoded:
    """The ids of each row; none for a dropped one. What stands is not encoded. chats: by row, those to encode."""
    if dtype != token_dtype(tokenizer.vocab_size):
        raise InvariantError(f"ids of {tokenizer.vocab_size} pieces do not go into {dtype.str}, as was planned")
    places = _places(rows, standing)
    stands = np.isin(np.arange(len(rows)), list(places))
    talked = np.isin(np.arange(len(rows)), list(chats))
    fresh = rows.kept & ~stands & ~talked
    written, sizes = encode(rows.some(np.flatnonzero(fresh)), tokenizer, bos_each)
    said = _closed(encode_chats(list(chats.values()), tokenizer), tokenizer, bos_each)
    stood = np.array([stop - start for start, stop in places.values()], np.int64)
    lengths, origin = np.zeros(len(rows), np.int64), np.full(len(rows), -1)
    for number, (mask, found) in enumerate(((fresh, sizes), (talked, said[2]), (stands, stood))):
        lengths[mask], origin[mask] = found, number
    flat = _in_turn([written, said[0].astype(dtype), _taken(places, standing.flat)], lengths, origin)
    if said[1].all() and standing.loss is None:
        return Encoded(flat, lengths, None)
    learnt = np.ones(len(standing.flat), np.uint8) if standing.loss is None else standing.loss
    loss = _in_turn([np.ones(len(written), np.uint8), said[1], _taken(places, learnt)], lengths, origin)
    return Encoded(flat, lengths, None if loss.all() else loss)


def encode(texts: Sequence[str], tokenizer: Tokenizer, bos_each: bool = False) -> tuple[Ids, Ids]:
    """(ids in the vocabulary's dtype, ids of each text): each text between BOS, where asked for, and one EOS.

    Raises TokenizerError where one of a few comes back otherwise.
    """
    texts = as_texts(texts)
    bos, each = (tokenizer.bos_id, 2) if bos_each else (-1, 1)
    lengths, end = np.empty(len(texts), np.int64), 0
    out = np.empty(int(texts.sizes.sum()) // 3 + each * len(texts) + 64, token_dtype(tokenizer.vocab_size))
    checked = _checked(len(texts))
    for first, last in _batches(texts.sizes):
        flat, sizes = tokenizer.encode_batch(texts[first:last])
        _check_ids(flat, tokenizer)
        stops = np.cumsum(sizes)
        for at in [row for row in checked if first <= row < last]:
            stop = stops[at - first]
            _check_round_trip(texts[at], flat[stop - sizes[at - first] : stop], checked[at], tokenizer)
        begin, end = end, end + len(flat) + each * len(sizes)
        if end > len(out):
            out = np.concatenate([out[:begin], np.empty(end - begin + end // 2, out.dtype)])
        put_closed(flat.astype(np.int32, copy=False), sizes, bos, tokenizer.eos_id, out[begin:end])
        lengths[first:last] = sizes + each
    return out[:end], lengths


def _checked(count: int) -> dict[int, int | None]:
    """row -> how many of its ids are decoded again, None for all; of `count` rows."""
    begun = dict.fromkeys(range(0, count, max(1, count // ROWS_BEGUN)), IDS_BEGUN)
    return {**begun, **dict.fromkeys(range(0, count, max(1, count // ROWS_WHOLE)))}


def _batches(sizes: Ids) -> Iterator[tuple[int, int]]:
    """(first text, one past the last): so few that their ids stay in the processor's caches until they are closed. What
    is left at the end goes with the last, as a tokenizer may take another way for a few."""
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        begun = ends[first] - sizes[first]
        last = max(first + 1, int(np.searchsorted(ends, begun + BATCH_BYTES, "right")))
        if ends[-1] - ends[last - 1] < BATCH_BYTES // 8:
            last = len(sizes)
        yield first, last
        first = last


def _closed(chats: Sequence[tuple[Ids, Ids]], tokenizer: Tokenizer, bos_each: bool) -> tuple[Ids, Ids, Ids]:
    """(ids, loss, ids of each chat), with BOS where asked for; it is learnt where all of a chat is."""
    ids, loss = [np.empty(0, np.int32)], [np.empty(0, np.uint8)]
    for own, learnt in chats:
        if bos_each:
            ids.append(np.array([tokenizer.bos_id], np.int32))
            loss.append(np.array([learnt.all()], np.uint8))
        ids.append(own)
        loss.append(learnt)
    sizes = np.array([len(own) + bos_each for own, _ in chats], np.int64)
    return np.concatenate(ids), np.concatenate(loss), sizes


def _places(rows: Documents, standing: Standing) -> dict[int, tuple[int, int]]:
    """row -> its place, of the kept rows that stand."""
    if not standing.places:
        return {}
    keys = enumerate(rows.row_keys.to_pylist())
    return {row: standing.places[key] for row, key in keys if rows.kept[row] and key in standing.places}


def _taken(places: Mapping[int, tuple[int, int]], source: Ids) -> Ids:
    """What `source` holds of the rows that stand, one after another."""
    return np.concatenate([np.empty(0, source.dtype), *(source[start:stop] for start, stop in places.values())])


def _in_turn(sources: Sequence[Ids], sizes: Ids, origin: Ids) -> Ids:
    """The items of all rows in their order; each source holds its rows in that order too."""
    used = [source for source in sources if len(source)]
    if len(used) < 2:
        return used[0] if used else sources[0]
    out = np.empty(int(sizes.sum()), sources[0].dtype)
    owner = np.repeat(origin, sizes)
    for number, source in enumerate(sources):
        out[owner == number] = source
    return out


def _check_ids(ids: Ids, tokenizer: Tokenizer) -> None:
    """No text may hold a control id, nor an id that the vocabulary lacks."""
    if not len(ids):
        return
    lowest, highest = int(ids.min()), int(ids.max())
    if not 0 <= lowest <= highest < tokenizer.vocab_size:
        raise TokenizerError(
            f"tokenizer {tokenizer.name} gave id {highest}, its last is {tokenizer.vocab_size - 1}",
            "restore its files",
        )
    for word in ("eos_id", "bos_id", "pad_id"):
        number = getattr(tokenizer, word)
        if lowest <= number <= highest and np.any(ids == number):
            raise TokenizerError(
                f"tokenizer {tokenizer.name} turned text into its {word} {number}",
                "use a model whose control pieces are of type CONTROL",
            )


def _check_round_trip(text: str, ids: Ids, most: int | None, tokenizer: Tokenizer) -> None:
    """Loss that nobody counts is an error; unknown ids are counted, and judged by the suite.

    most: ids that are looked at. Where some are left out the last character may be half there, and is not looked at.
    """
    whole, ids = most is None or len(ids) <= most, ids[:most]
    if np.any(ids == tokenizer.unk_id):
        return
    back = tokenizer.decode(ids)
    if not whole:
        back = back.rstrip("\ufffd")
        text = text[: max(1, len(back))]
    if back != text and tokenizer.exact_on(text):
        at = next((at for at, pair in enumerate(zip(back, text, strict=False)) if pair[0] != pair[1]), len(back))
        raise TokenizerError(
            f"tokenizer {tokenizer.name} is lossy: {text[at : at + 20]!r} at character {at} came back as"
            f" {back[at : at + 20]!r}",
            "use one with byte pieces and without normalization",
        )
