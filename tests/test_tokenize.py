"""tokenize: cuts, drops, one EOS, conservation, what is copied and what is encoded."""

import hashlib
import json
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tasks.artifacts.documents import MESSAGES
from tasks.artifacts.manifest import Entry
from tasks.artifacts.tokens import TOKEN_ROWS, token_dtype
from tasks.artifacts.verdicts import FILTER_CUTS
from tasks.encoder import probe_ids
from tasks.errors import InvariantError, ParamsError, TokenizerError
from tasks.text.chats import joined
from tasks.text.excision import excise, union
from tasks.tokenize import STEP, ChatParams, encoding, invariants, rows
from tasks.tokenize import chats as chats_module
from tasks.tokenize import tokens as folder
from tasks.tokenize.documents import documents, row_key
from tasks.tokenize.planning import plan_tokenizer, plan_tokens
from tasks.tokenize.tokenizer import facts
from tasks.tokenize.tokenizer import make as make_tokenizer
from tests.memory_reads import MemoryReads
from tests.tokenizer_kit import Letters, lay

PARAMS = SimpleNamespace(min_characters=5, chat=SimpleNamespace(loss="all"))
PLAIN = {"template": "plain", "bos_each": False}
NO_CUTS = pa.table({name: pa.array([], pa.int64()) for name in ("row", "start", "stop")})


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    root = tmp_path_factory.mktemp("small")
    return lay(root), root / "tokenizers/small/tokenizer.model"


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def tables_of(texts, verdicts=None, dedup_cuts=(), cuts=(), filter_cuts=()):
    """verdicts: row -> (step, verdict, rule)."""
    found = {
        "normalize/text": pa.table({"text_sha": [sha(t) for t in texts], "text": pa.array(texts, pa.large_string())})
    }
    gone = set()
    for step in ("filter", "dedup", "decontaminate"):
        words, rules = [], []
        for row in range(len(texts)):
            judge, verdict, rule = (verdicts or {}).get(row, (None, None, None))
            words.append("gone" if row in gone else verdict if judge == step else "keep")
            rules.append(rule if judge == step else None)
            if judge == step and verdict == "drop":
                gone.add(row)
        found[f"{step}/verdicts"] = pa.table(
            {"verdict": pa.array(words, pa.string()), "rule": pa.array(rules, pa.string())}
        )
    for name, spans in (("dedup/cuts", dedup_cuts), ("decontaminate/cuts", cuts)):
        columns = [pa.array(list(column), pa.int64()) for column in zip(*spans, strict=True)]
        found[name] = pa.table(columns, names=["row", "start", "stop"]) if spans else NO_CUTS
    columns = [list(column) for column in zip(*filter_cuts, strict=True)] or [[]] * len(FILTER_CUTS)
    found["filter/cuts"] = pa.table(columns, schema=FILTER_CUTS)
    return found


def reads_of(tables, tokenizer, path, name="web-0001", previous=None, **spec):
    spec = {"tokenizer": facts(tokenizer)} | PLAIN | spec
    return MemoryReads(name, tables, spec=spec, paths={"tokenizer": path}, previous=previous)


def made(small, texts, verdicts=None, dedup_cuts=(), cuts=(), previous=None, filter_cuts=(), **spec):
    tables = tables_of(texts, verdicts, dedup_cuts, cuts, filter_cuts)
    return folder.make(reads_of(tables, *small, previous=previous, **spec), PARAMS)


def decoded(small, result):
    """The text of each row."""
    ends = np.cumsum(result.files[".parquet"]["tokens"].to_numpy())
    each = np.split(result.files[".bin"], ends[:-1]) if len(ends) else []
    return [small[0].decode(ids[:-1]) if len(ids) else None for ids in each]


# --- cuts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spans", "left"),
    [
        ("one\n\ntwo\n\nthree", [(5, 8)], "one\n\nthree"),
        ("one two three", [(3, 7)], "one\n\n three"),
        ("one\n\ntwo", [(0, 3)], "two"),
        ("one\n\ntwo", [(5, 8)], "one"),
        ("one\n\ntwo", [(0, 8)], ""),
        ("abcdef", [(2, 4), (3, 5)], "ab\n\nf"),
        ("abcdef", [(1, 2), (2, 3)], "a\n\ndef"),
        ("abcdef", [(4, 5), (1, 2)], "a\n\ncd\n\nf"),
        ("abcdef", [(3, 3)], "abcdef"),
        ("a\n\n\n\nb", [(2, 3)], "a\n\nb"),
        ("aé日b", [(1, 6)], "a\n\nb"),
        ("ab\ncd\nef", [(0, 2), (3, 5)], "ef"),
        ("abc", [], "abc"),
    ],
)
def test_a_cut_leaves_exactly_one_blank_line_inside_and_none_at_the_borders(text, spans, left):
    result = excise(text, spans)
    assert result.text == left
    assert len(text) + result.separators == len(left) + result.characters_cut


@pytest.mark.parametrize("span", [(2, 3), (1, 2), (0, 7), (-1, 1), (3, 1)])
def test_a_span_that_is_none_is_refused(span):
    with pytest.raises(ValueError, match=r"span|character"):
        excise("aé日", [span])


@given(st.text("ab\né日 ", max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6))
def test_cutting_conserves_characters_and_keeps_the_rest_in_order(text, wanted):
    borders = [len(text[:at].encode()) for at in range(len(text) + 1)]
    spans = [tuple(sorted((borders[min(a, len(text))], borders[min(b, len(text))]))) for a, b in wanted]
    result = excise(text, spans)
    assert len(text) + result.separators == len(result.text) + result.characters_cut
    gone = {byte for start, stop in spans for byte in range(start, stop)}
    kept = [letter for at, letter in enumerate(text) if borders[at] not in gone]
    assert [c for c in result.text if c != "\n"] == [c for c in kept if c != "\n"]
    assert result == excise(text, list(reversed(spans))) == excise(text, union(spans))


# --- one part -----------------------------------------------------------------------------------------------


def test_every_fate_of_a_row(small):
    texts = ["kept one", "filtered", "a twin", "leaked!", "keep CUT keep", "short CUTCUT", "kept two é"]
    verdicts = {
        1: ("filter", "drop", "too_short"),
        2: ("dedup", "drop", "near"),
        3: ("decontaminate", "drop", "gsm8k"),
    }
    result = made(small, texts, verdicts, dedup_cuts=[(4, 5, 8)], cuts=[(4, 6, 9), (5, 2, 12)])
    table = result.files[".parquet"]
    assert table.schema == TOKEN_ROWS
    assert table["reason"].to_pylist() == [
        None, "filter:too_short", "dedup:near", "decontaminate:gsm8k", None, "cut_short", None,
    ]  # fmt: skip
    assert decoded(small, result) == ["kept one", None, None, None, "keep \n\nkeep", None, "kept two é"]
    assert table["characters_cut"].to_pylist() == [0, 0, 0, 0, 4, 0, 0]
    assert table["separators"].to_pylist() == [0, 0, 0, 0, 2, 0, 0]
    assert table["characters_kept"].to_pylist() == [8, 0, 0, 0, 9, 0, 10]
    assert table["bytes"].to_pylist() == [8, 0, 0, 0, 11, 0, 11]
    counts = result.counts
    assert counts["documents_in"], counts["documents_kept"] == (7, 3)
    assert counts["characters_in"] == sum(len(text) for text in texts)
    assert counts["characters_in"] == sum(counts[f"characters_{fate}"] for fate in ("kept", "cut", "dropped"))
    assert counts["dropped|rule=cut_short"] == 1
    assert counts["characters_dropped|rule=cut_short"] == 12
    assert counts["ends"] == 3
    assert counts["tokens"] == len(result.files[".bin"]) == table["tokens"].to_numpy().sum()


def test_a_document_ends_with_exactly_one_eos_whatever_it_says(small):
    """Case 15: an empty text, and one that ends with the letters of the EOS piece."""
    result = made(small, ["hello", "", "ends with </s>"])
    ids, tokens = result.files[".bin"], result.files[".parquet"]["tokens"].to_numpy()
    assert np.count_nonzero(ids == small[0].eos_id) == 3
    assert (ids[np.cumsum(tokens) - 1] == small[0].eos_id).all()
    assert tokens[1] == 1
    assert decoded(small, result) == ["hello", "", "ends with </s>"]


def test_every_document_begins_with_exactly_one_bos_where_asked(small):
    """Case 15: also an empty one; text that spells the piece stays text; a chat; and what stands is not encoded."""
    texts = ["hello", "", "<s> starts", "gone"]
    gone = {3: ("filter", "drop", "x")}
    result = made(small, texts, gone, bos_each=True)
    ids, tokens = result.files[".bin"], result.files[".parquet"]["tokens"].to_numpy()
    starts = (np.cumsum(tokens) - tokens)[:3]
    assert (ids[starts] == small[0].bos_id).all() and np.count_nonzero(ids == small[0].bos_id) == 3
    assert tokens.tolist() == [*(made(small, texts, gone).files[".parquet"]["tokens"].to_numpy()[:3] + 1), 0]
    assert decoded(small, result) == ["hello", "", "<s> starts", None]
    assert (result.counts["begins"], result.counts["ends"]) == (3, 3)
    assert result.counts["learnt"] == len(ids)
    assert list(invariants(staged({"u": result.counts}, result.files[".parquet"], "document"))) == []
    again = made(small, [*texts, "one more"], gone, bos_each=True, previous=before(result))
    assert again.files[".bin"][: len(ids)].tolist() == ids.tolist()


@pytest.mark.parametrize("texts", [[], ["all", "gone"]])
def test_a_part_without_a_kept_document(small, texts):
    result = made(small, texts, dict.fromkeys(range(len(texts)), ("filter", "drop", "x")))
    assert result.files[".bin"].shape == (0,)
    assert result.files[".bin"].dtype == np.dtype("<u2")
    assert result.files[".parquet"].num_rows == len(texts)
    assert result.counts["tokens"] == 0


def test_filters_lines_and_masks_are_applied_with_the_other_cuts(small):
    text = (
        "a long enough first line of text\njavascript here\nwrite to a@b.co now please\n\nLEAKED passage\n\nand the end"
    )
    start, leak = text.index("javascript"), text.index("LEAKED")
    mail, stop = text.index("a@b.co"), text.index("write")
    lines = [(0, start, stop, "scripts", ""), (0, mail, mail + 6, "mask:email", "<email>")]
    result = made(small, [text], {0: ("filter", "cut", "scripts")}, cuts=[(0, leak, leak + 14)], filter_cuts=lines)
    left = "a long enough first line of text\nwrite to <email> now please\n\nand the end"
    assert decoded(small, result) == [left]
    counts = result.counts
    assert counts["characters_in"] == counts["characters_kept"] + counts["characters_cut"]
    assert counts["characters_kept"] + counts["separators"] == len(left)
    assert row_key("m", "s", [(1, 2)]) != row_key("m", "s", [(1, 2, "")]) != row_key("m", "s", [(1, 2, "x")])


def test_a_short_document_without_cuts_is_the_filters_affair(small):
    assert made(small, ["ab"]).files[".parquet"]["reason"].to_pylist() == [None]


def test_cuts_of_a_dropped_row_do_nothing(small):
    result = made(small, ["gone text"], {0: ("filter", "drop", "x")}, cuts=[(0, 0, 4)])
    assert result.files[".parquet"]["reason"].to_pylist() == ["filter:x"]
    assert result.counts["characters_dropped"] == 9


def test_a_cut_in_the_middle_of_a_character_is_refused_by_name(small):
    with pytest.raises(InvariantError, match=r"web-0001, row 1: byte 2 lies inside a character"):
        made(small, ["fine", "aé"], cuts=[(1, 0, 2)])
    with pytest.raises(InvariantError, match="row 2 of 2"):
        made(small, ["fine", "aé"], cuts=[(2, 0, 1)])


def test_rows_that_do_not_match_are_refused(small):
    tables = tables_of(["a", "b"])
    for name in ("filter/verdicts", "dedup/verdicts", "normalize/text"):
        with pytest.raises(InvariantError, match="rows"):
            folder.make(reads_of(tables | {name: tables[name].slice(1)}, *small), PARAMS)


def test_gone_without_a_drop_is_refused(small):
    with pytest.raises(InvariantError, match="no earlier step dropped it"):
        made(small, ["text"], {0: ("dedup", "gone", None)})


def staged(counts, table, bos="none"):
    """An artifact of one part."""
    return SimpleNamespace(
        counts=lambda folder: counts,
        table=lambda folder, columns, unit: table.select(columns),
        params=SimpleNamespace(bos=bos),
    )


words = st.lists(st.sampled_from(["mill", "日本", "\n", "\n\n", " ", "é", "▁", "</s>", "\t"]), max_size=12).map("".join)


@settings(max_examples=60)
@given(st.lists(words, max_size=6), st.data())
def test_conservation_whatever_the_verdicts(small, texts, data):
    fates = [
        ("filter", "drop", "a"),
        ("dedup", "drop", "b"),
        ("decontaminate", "drop", "c"),
        ("dedup", "cut", None),
    ]
    verdicts = {row: data.draw(st.sampled_from(fates)) for row in range(len(texts)) if data.draw(st.booleans())}
    cuts = []
    for row, text in enumerate(texts):
        if text and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(text) - 1))
            start = len(text[:at].encode())
            cuts.append((row, start, start + len(text[at].encode())))
    result = made(small, texts, verdicts, cuts=cuts)
    table = result.files[".parquet"]
    assert list(invariants(staged({"u": result.counts}, table))) == []
    assert [excise(t, [(a, b) for r, a, b in cuts if r == row]).text if reason is None else None
            for row, (t, reason) in enumerate(zip(texts, table["reason"].to_pylist(), strict=True))
            ] == decoded(small, result)  # fmt: skip


# --- the tokenizer ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, "<u2"), (65_537, "<i4")])
def test_the_dtype_follows_the_vocabulary(monkeypatch, vocab_size, dtype):
    letters = Letters(vocab_size)
    monkeypatch.setattr(folder, "open_model", lambda *a: letters)
    top = chr(vocab_size - 1 - 4)
    spec = {
        "tokenizer": {"engine": "e", "options": {}, "sha256": "", "maker": "m", "dtype": token_dtype(vocab_size).str}
    } | PLAIN
    result = folder.make(MemoryReads("w-1", tables_of([f"a{top}"]), spec=spec, paths={"tokenizer": "/x/y/z"}), PARAMS)
    assert result.files[".bin"].dtype == np.dtype(dtype)
    assert result.files[".bin"].tolist() == [ord("a") + 4, vocab_size - 1, 2]
    with pytest.raises(TokenizerError, match=f"gave id {vocab_size}, its last is {vocab_size - 1}"):
        encoding.encode([chr(vocab_size - 4)], letters)


class Lossy(Letters):
    def decode(self, ids):
        return super().decode(ids).lower()


class Careless(Letters):
    def encode_batch(self, texts):
        ids, lengths = super().encode_batch(texts)
        return np.where(ids == ord("$") + 4, 2, ids), lengths


def test_a_lossy_tokenizer_is_found_out():
    with pytest.raises(TokenizerError, match="lossy: 'Big' at character 1 came back as 'big'"):
        encoding.encode(["aBig"], Lossy(1000))


@pytest.mark.parametrize(("rows", "whole"), [(3, {0, 1, 2}), (8, {*range(8)}), (40, {0, 5, 10, 15, 20, 25, 30, 35})])
def test_rows_are_held_against_their_text_some_whole_and_of_more_the_beginning(rows, whole):
    long, others = "a" * encoding.IDS_BEGUN, ["b"] * rows
    for row in range(rows):
        begins, ends = others.copy(), others.copy()
        begins[row], ends[row] = "aaB" + long, long + "B"
        with pytest.raises(TokenizerError, match="lossy: 'Baaa"):
            encoding.encode(begins, Lossy(1000))
        if row in whole:
            with pytest.raises(TokenizerError, match=f"lossy: 'B' at character {encoding.IDS_BEGUN} came back as 'b'"):
                encoding.encode(ends, Lossy(1000))
        else:
            encoding.encode(ends, Lossy(1000))


def test_a_tokenizer_that_gives_nothing_back_is_found_out_where_a_text_is_begun():
    silent = type("Silent", (Letters,), {"decode": lambda self, ids: "" if len(ids) > 1 else "b"})(1000)
    with pytest.raises(TokenizerError, match="lossy"):
        encoding.encode(["b", "a" * encoding.IDS_BEGUN + "a", *["b"] * 30], silent)


@pytest.mark.parametrize("before", range(3))
def test_a_text_that_is_begun_may_be_cut_within_a_character(small, before):
    text = "a" * before + "\U0001f33e" * encoding.IDS_BEGUN  # four ids each: bytes that the small model never joined
    ids, lengths = encoding.encode(["corn", text, *["corn"] * 30], small[0])
    assert lengths[1] > 4 * encoding.IDS_BEGUN
    assert small[0].decode(ids[lengths[0] : lengths[0] + lengths[1] - 1]) == text


def test_text_that_becomes_a_control_token_is_found_out():
    with pytest.raises(TokenizerError, match="turned text into its eos_id 2"):
        encoding.encode(["a$b"], Careless(1000))


def test_unknown_ids_are_counted(monkeypatch):
    class Unknowing(Letters):
        def encode_batch(self, texts):
            ids, lengths = super().encode_batch(texts)
            return np.where(ids == ord("?") + 4, 0, ids), lengths

    monkeypatch.setattr(folder, "open_model", lambda *a: Unknowing(1000))
    spec = {"tokenizer": {"engine": "e", "options": {}, "sha256": "", "maker": "m", "dtype": "<u2"}} | PLAIN
    result = folder.make(MemoryReads("w-1", tables_of(["a?b?", "c"]), spec=spec, paths={"tokenizer": "/x/y/z"}), PARAMS)
    assert result.files[".parquet"]["unknown"].to_pylist() == [2, 0]
    assert result.counts["unknown"] == 2


# --- reuse --------------------------------------------------------------------------------------------------


def before(result):
    return MemoryReads(
        "web-0001", {"tokenize/tokens": result.files[".parquet"]}, {"tokenize/tokens": result.files[".bin"]}
    )


def watched(monkeypatch):
    seen = []
    plain = encoding.encode
    monkeypatch.setattr(encoding, "encode", lambda texts, *other: seen.extend(texts) or plain(texts, *other))
    return seen


def test_only_newly_kept_and_newly_cut_rows_are_encoded(small, monkeypatch):
    texts = ["first document", "second document", "third document", "fourth document"]
    old = made(small, texts, {1: ("filter", "drop", "x")})
    seen = watched(monkeypatch)
    new = made(small, texts, {2: ("filter", "drop", "x")}, cuts=[(3, 0, 7)], previous=before(old))
    assert seen == ["second document", "document"]
    fresh = made(small, texts, {2: ("filter", "drop", "x")}, cuts=[(3, 0, 7)])
    assert new.files[".parquet"].equals(fresh.files[".parquet"])
    assert new.files[".bin"].tolist() == fresh.files[".bin"].tolist()
    assert new.counts == fresh.counts


def test_a_standing_part_that_does_not_fit_is_not_used(small, monkeypatch):
    old = made(small, ["first document"])
    short = before(old)
    short._arrays["tokenize/tokens"] = old.files[".bin"][:-1]
    seen = watched(monkeypatch)
    made(small, ["first document"], previous=short)
    assert seen == ["first document"]


def test_the_row_key_covers_text_cuts_and_maker():
    keys = [row_key("m", "a", ()), row_key("n", "a", ()), row_key("m", "b", ()), row_key("m", "a", [(0, 1)])]
    assert len(set(keys)) == 4
    assert row_key("m", "a", [(3, 5), (0, 2), (2, 3)]) == row_key("m", "a", [(0, 5)])
    assert [len(key) for key in keys] == [32] * 4


# --- wiring -------------------------------------------------------------------------------------------------


def plan_of(root, names=("web-1", "web-2"), bos="none", template="plain"):
    entries = {name: Entry("k", "s", {}, 0, {}, (name, at)) for at, name in enumerate(names)}
    params = SimpleNamespace(tokenizer="small", bos=bos, chat=SimpleNamespace(template=template))
    return SimpleNamespace(params=params, root=root, entries=lambda folder: entries)


def test_the_plan_names_the_tokenizer_by_what_it_does(small):
    tokenizer, path = small
    units = plan_tokens(plan_of(path.parent.parent.parent), STEP.folders[0])
    assert [unit.name for unit in units] == ["web-1", "web-2"]
    assert units[0].files == {"tokenizer": str(path)}
    assert units[0].spec["tokenizer"]["sha256"] == tokenizer.sha256
    assert ("decontaminate/cuts", "web-1") in units[0].reads
    assert units[0].reads[0] == ("normalize/text", "web-1")
    with pytest.raises(TokenizerError, match="gristmill tokenizer train small"):
        plan_tokens(plan_of(Path("/nowhere")), STEP.folders[0])


def test_bos_and_template_are_settled_by_the_plan(small, tmp_path, monkeypatch):
    home = small[1].parent.parent.parent
    assert plan_tokens(plan_of(home), STEP.folders[0])[0].spec["bos_each"] is False
    assert plan_tokens(plan_of(home, bos="document"), STEP.folders[0])[0].spec["bos_each"] is True
    assert plan_tokenizer(plan_of(home, bos="document"), STEP.folders[-1])[0].spec["bos"] == "document"
    monkeypatch.setattr(
        "tasks.tokenize.planning.load", lambda folder: SimpleNamespace(**vars(small[0]) | {"bos_id": -1})
    )
    monkeypatch.setattr("tasks.tokenize.planning.facts", lambda tokenizer: {"engine": "sentencepiece"})
    with pytest.raises(TokenizerError, match="bos is document, but tokenizer small has no BOS; its EOS is 2"):
        plan_tokens(plan_of(home, bos="document"), STEP.folders[0])
    monkeypatch.undo()
    with pytest.raises(ParamsError, match=r"chat\.template own\.jinja cannot be read"):
        plan_tokens(plan_of(home, template="own.jinja"), STEP.folders[0])
    (home / "own.jinja").write_text("{{ messages }}")
    try:
        spec = plan_tokens(plan_of(home, template="own.jinja"), STEP.folders[0])[0].spec
    finally:
        (home / "own.jinja").unlink()
    assert (spec["template"], spec["jinja2"]) == ("{{ messages }}", metadata.version("jinja2"))


def test_the_maker_changes_with_model_library_and_behaviour(small, monkeypatch):
    """Case 17: one name, other ids."""
    tokenizer, _ = small
    plain = facts(tokenizer)
    assert plain["maker"] == facts(tokenizer)["maker"]
    monkeypatch.setattr("tasks.encoder.SentencePiece.version", "9.9")
    assert facts(tokenizer)["maker"] != plain["maker"]
    monkeypatch.undo()
    drifted = [*probe_ids(tokenizer), 7]
    monkeypatch.setattr("tasks.tokenize.tokenizer.probe_ids", lambda t: drifted)
    assert facts(tokenizer)["maker"] != plain["maker"]


def test_tokenizer_json_says_what_readers_need(small):
    tokenizer, path = small
    (unit,) = plan_tokenizer(plan_of(path.parent.parent.parent), STEP.folders[1])
    content = json.loads(make_tokenizer(MemoryReads(unit.name, spec=unit.spec), None).files[".json"])
    wanted = {
        "format": 1,
        "vocab_size": tokenizer.vocab_size,
        "dtype": "<u2",
        "eos_id": 2,
        "sha256": tokenizer.sha256,
    }
    assert content.items() >= wanted.items()


def test_rows_hold_no_text(small):
    result = made(small, ["some text"])
    artifact = SimpleNamespace(table=lambda folder, columns, unit: result.files[".parquet"])
    table = rows(artifact, "web-0001")
    assert table.column_names[:4] == ["part", "row", "source", "tokens"]
    assert table.to_pylist()[0]["source"] == "web"
    assert "text" not in table.column_names


def test_invariants_name_what_is_off(small):
    result = made(small, ["one text", "two text"], {1: ("filter", "drop", "x")})
    off = dict(result.counts)
    off["characters_in"] += 1
    off["tokens"] += 1
    off["ends"] += 1
    off["dropped|rule=filter:x"] += 1
    table = result.files[".parquet"]
    assert len(list(invariants(staged({"web-1": off}, table)))) == 4
    assert len(list(invariants(staged({"web-1": off}, table, "document")))) == 5


def test_documents_reads_only_what_it_needs(small):
    rows_of = documents(reads_of(tables_of(["some text"]), *small), 5, "maker")
    assert (list(rows_of.some(np.array([0]))), rows_of.reasons) == (["some text"], [None])


# --- chats --------------------------------------------------------------------------------------------------


def chat_params(loss="assistant"):
    return SimpleNamespace(min_characters=5, chat=SimpleNamespace(loss=loss))


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """A tokenizer that reserves ChatML's markers, but none of Llama's."""
    root = tmp_path_factory.mktemp("marked")
    return lay(root, reserved=("<|im_start|>", "<|im_end|>")), root / "tokenizers/small/tokenizer.model"


def chat_tables(chats, **changes):
    """chats: each a list of (role, content), or a text."""
    texts, messages, offsets = [], [], []
    for chat in chats:
        plain = isinstance(chat, str)
        text, begins = (chat, None) if plain else joined([content for _, content in chat])
        texts.append(text)
        offsets.append(begins)
        messages.append(None if plain else [{"role": role, "content": content} for role, content in chat])
    tables = tables_of(texts, **changes)
    table = tables["normalize/text"].append_column("messages", pa.array(messages, MESSAGES))
    tables["normalize/text"] = table.append_column("offsets", pa.array(offsets, pa.list_(pa.int64())))
    return tables


def chat_made(tokenizer, chats, template="chatml", loss="assistant", previous=None, bos_each=False, **changes):
    reads = reads_of(chat_tables(chats, **changes), *tokenizer, previous=previous, template=template, bos_each=bos_each)
    return folder.make(reads, chat_params(loss))


CHAT = [("user", "the miller grinds corn"), ("assistant", "into flour <|im_end|>"), ("user", "and")]


def test_chatml_by_the_control_pieces_and_learnt_by_role(marked):
    """What a message says opens and closes no turn: its <|im_end|> is text, and not learnt where the user says it."""
    tokenizer, _ = marked
    result = chat_made(marked, [CHAT, "the river turns the wheel"])
    starts, ends = (tokenizer.control[name] for name in ("<|im_start|>", "<|im_end|>"))
    assert min(starts, ends) > 3
    flat, loss = result.files[".bin"], np.frombuffer(result.files[".loss"], np.uint8)
    size = int(result.files[".parquet"]["tokens"][0].as_py())
    ids, own = flat[:size], loss[:size]
    assert (ids == starts).sum() == (ids == ends).sum() == 3
    assert tokenizer.decode(ids) == "".join(f"{role}\n{content}\n" for role, content in CHAT)
    assert tokenizer.decode(ids[own == 1]) == "into flour <|im_end|>"
    assert ids[own == 1][-1] == ends and own[-1] == 0
    assert loss[size:].all() and result.counts["learnt"] == int(loss.sum())
    answered = chat_made(marked, [CHAT[:2]])
    assert answered.files[".loss"][-1] == 1  # EOS after the last answer
    assert result.files[".parquet"]["learnt"].to_pylist() == [int(own.sum()), len(loss) - size]


def test_markers_that_a_tokenizer_lacks_are_text(small):
    result = chat_made(small, [CHAT], "llama3")
    said = "".join(f"<|start_header_id|>{role}<|end_header_id|>\n\n{text}<|eot_id|>" for role, text in CHAT)
    assert decoded(small, result) == [said]
    learnt = result.files[".bin"][np.frombuffer(result.files[".loss"], np.uint8) == 1]
    assert small[0].decode(learnt) == "into flour <|im_end|><|eot_id|>"


def test_plain_and_all(small, marked):
    plain = chat_made(small, [CHAT], "plain", "all")
    assert decoded(small, plain) == ["\n\n".join(content for _, content in CHAT)]
    assert ".loss" not in plain.files
    everything = chat_made(marked, [CHAT], "chatml", "all")
    assert ".loss" not in everything.files
    assert everything.files[".bin"].tolist() == chat_made(marked, [CHAT]).files[".bin"].tolist()


def test_a_chat_without_an_answer_is_counted(marked):
    assert chat_made(marked, [CHAT[:1], CHAT]).counts["documents_unlearnt"] == 1


def test_what_filter_masks_in_a_message_is_masked_and_the_roles_stay(marked):
    text = "\n\n".join(content for _, content in CHAT)
    at = text.encode().index(b"flour")
    result = chat_made(marked, [CHAT], filter_cuts=[(0, at, at + 5, "x", "<email>")])
    assert "into <email> <|im_end|>" in marked[0].decode(result.files[".bin"])


def test_roles_are_in_the_row_key_and_standing_chats_keep_their_loss(marked, monkeypatch):
    turned = [("assistant", CHAT[0][1]), *CHAT[1:]]
    chats = [CHAT, turned, "the river turns the wheel"]
    first = chat_made(marked, chats, verdicts={2: ("filter", "drop", "x")})
    keys = first.files[".parquet"]["row_key"].to_pylist()
    assert keys[0] != keys[1]
    arrays = {"tokenize/tokens.bin": first.files[".bin"]}
    arrays["tokenize/tokens.loss"] = np.frombuffer(first.files[".loss"], np.uint8)
    old = MemoryReads("web-0001", {"tokenize/tokens": first.files[".parquet"]}, arrays)
    monkeypatch.setattr(folder, "spans_of", lambda *a: pytest.fail("a standing chat is written again"))
    second = chat_made(marked, chats, previous=old)
    monkeypatch.undo()
    fresh = chat_made(marked, chats)
    assert second.files[".loss"] == fresh.files[".loss"]
    assert second.files[".bin"].tolist() == fresh.files[".bin"].tolist()


def test_a_marker_that_is_eos_is_refused(marked, monkeypatch):
    monkeypatch.setitem(chats_module.TEMPLATES, "chatml", (("<|im_start|>",), ("\n",), ("</s>",), ("\n",)))
    with pytest.raises(TokenizerError, match="</s> of the chat template is tokenizer small's EOS 2"):
        chat_made(marked, [CHAT])


def test_plain_cannot_tell_who_speaks():
    with pytest.raises(ValidationError, match="plain does not tell turns apart"):
        ChatParams(template="plain", loss="assistant")
