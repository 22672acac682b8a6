"""Which field holds the text: shapes recognised, fields mapped, and what is left for the metadata."""

import json
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.ingest.containers import opened
from tasks.ingest.fields import Reject, read_fields
from tasks.ingest.how import How
from tasks.ingest.records import records
from tasks.sources import format_of
from tests.corpora import shared


def fields(record, kind="web", **mapping):
    return read_fields(json.dumps(record).encode(), "jsonl", kind, How(mapping))


def turns(found):
    return [(message["role"], message["content"]) for message in found.messages]


def refused(record, kind="web", **mapping):
    with pytest.raises(Reject) as caught:
        fields(record, kind, **mapping)
    return caught.value.reason, caught.value.detail


# Shapes


@pytest.mark.parametrize(
    ("record", "shape", "said"),
    [
        ({"messages": [{"role": "user", "content": "q"}]}, "messages", [("user", "q")]),
        (
            {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "system": "s"},
            "conversations",
            [("system", "s"), ("user", "q"), ("assistant", "a")],
        ),
        (
            {"conversations": [{"from": "function_call", "value": "f"}, {"from": "observation", "value": "o"}]},
            "conversations",
            [("function_call", "f"), ("observation", "o")],
        ),
        ({"instruction": "i", "input": "x", "output": "o"}, "instruction", [("user", "i\nx"), ("assistant", "o")]),
        (
            {"instruction": "i", "input": "", "output": "o", "system": "s", "history": [["q", "a"]]},
            "instruction",
            [("system", "s"), ("user", "q"), ("assistant", "a"), ("user", "i"), ("assistant", "o")],
        ),
        (
            {"instruction": "i", "instances": [{"input": "x", "output": "1"}, {"input": "", "output": "2"}]},
            "instances",
            [("user", "i\nx"), ("assistant", "1"), ("user", "i"), ("assistant", "2")],
        ),
        ({"prompt": "p", "completion": "c"}, "pair", [("user", "p"), ("assistant", "c")]),
        ({"prompt": "p", "response": "c"}, "pair", [("user", "p"), ("assistant", "c")]),
        ({"prompt": [{"role": "user", "content": "p"}]}, "prompt", [("user", "p")]),
        (
            {"prompt": "p", "chosen": "good", "rejected": "bad"},
            "preference",
            [("user", "p"), ("assistant", "good")],
        ),
        (
            {
                "conversations": [{"from": "human", "value": "q"}],
                "chosen": {"from": "gpt", "value": "good"},
                "rejected": {"from": "gpt", "value": "bad"},
            },
            "preference",
            [("user", "q"), ("assistant", "good")],
        ),
        ([{"role": "user", "content": "q"}], "list", [("user", "q")]),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "value": "b"}]}
                ]
            },
            "messages",
            [("user", "a\n\nb")],
        ),
        (
            {"messages": [{"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool", "content": "t"}]},
            "messages",
            [("assistant", ""), ("tool", "t")],
        ),
    ],
)
def test_chats(record, shape, said):
    found = fields(record, "chat")
    assert (found.shape, turns(found)) == (shape, said)


def test_outside_of_chats_the_parts_are_one_text():
    assert fields({"instruction": "i", "input": "x", "output": "o"}).text == "i\nx\n\no"
    assert fields({"prompt": "p", "completion": "c", "n": 1}) == (
        "p\n\nc", None, None, None, None, '{"n":1}', "pair",
    )  # fmt: skip
    assert fields({"text": "t", "instruction": "i", "output": "o"}).shape == "text"
    assert fields({"text": "t", "instruction": "i", "output": "o"}, "chat").shape == "instruction"


def test_the_rejected_answer_stays_in_the_metadata():
    found = fields({"prompt": "p", "chosen": "good", "rejected": "bad"}, "chat")
    assert found.metadata == '{"rejected":"bad"}'
    found = fields({"conversations": [{"from": "human", "value": "q", "weight": 1}], "tools": "[]"}, "chat")
    assert json.loads(found.metadata) == {"conversations": [{"weight": 1}], "tools": "[]"}


@pytest.mark.parametrize(
    ("record", "reason", "words"),
    [
        ({"body": "b", "id": 1}, "no_text", "its fields: body, id"),
        ({"prompt": "p", "answer": "a"}, "no_text", "its fields: answer, prompt"),
        ({"instruction": "i"}, "no_text", "its fields: instruction"),
        ({"conversations": "q"}, "type", "conversations is text, not a list"),
        ({"conversations": [{"from": "human"}]}, "type", "message 0 has null as its value"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "type", "a part of type image"),
        ({"instruction": "i", "output": "o", "history": [["q"]]}, "type", "history"),
        ({"instruction": "i", "instances": {}}, "type", "instances is an object"),
        ({"chosen": "a", "rejected": "b"}, "no_text", "an answer that was chosen"),
    ],
)
def test_what_has_no_shape(record, reason, words):
    found = refused(record, "chat")
    assert found[0] == reason and words in found[1]


SHAPES = {
    "data-juicer/data__demo-dataset-content.jsonl": {"content": 6},
    "data-juicer/data__demo-dataset-deduplication.jsonl": {"text": 14},
    "data-juicer/data__demo-dataset.jsonl": {"text": 6},
    "data-juicer/data_mixture__data__redpajama-c4-refined.jsonl": {"text": 10},
    "data-juicer/data_process_loop__data__demo-dataset.jsonl": {"text": 11},
    "data-juicer/process_cft_zh_data__data__alpaca-cot.jsonl": {"text": 11},
    "data-juicer/process_code_data__data__stack_exchange.jsonl": {"text": 70},
    "dolma/formats__test.jsonl": {"!no_text": 1},
    "dolma/formats__test.jsonl.gz": {"!no_text": 1},
    "dolma/formats__test.jsonl.zst": {"!no_text": 1},
    "dolma/multiple_files__cc_en_head-0091.jsonl": {"text": 10},
    "dolma/multiple_files__cc_en_head-0091.jsonl.gz": {"text": 10},
    "fastchat/vicuna_bench_question.jsonl": {"!no_text": 80},
    "llama-factory/alpaca_en_demo.json": {"instruction": 999},
    "llama-factory/c4_demo.jsonl": {"text": 300},
    "llama-factory/dataset_info.json": {"!no_text": 1},
    "llama-factory/dpo_zh_demo.json": {"preference": 300},
    "llama-factory/glaive_toolcall_en_demo.json": {"conversations": 300},
    "llama-factory/identity.json": {"instruction": 91},
    "llama-factory/mllm_demo.json": {"messages": 6},
    "llama-factory/v1_sft_demo.jsonl": {"messages": 500},
    "self-instruct/seed_tasks.jsonl": {"instances": 175},
    "self-instruct/t0__adversarial_qa_dbert_answer_the_following_q.jsonl": {"pair": 200},
    "self-instruct/t0__amazon_polarity_Is_this_review_negative.jsonl": {"pair": 200},
    "self-instruct/t0__cosmos_qa_context_question_description_text.jsonl": {"pair": 200},
    "self-instruct/t0__duorc_SelfRC_answer_question.jsonl": {"pair": 200},
    "self-instruct/user_oriented_instructions.jsonl": {"instances": 252},
    "xtuner/gsm8k_val_example_data.jsonl": {"prompt": 100},
    "xtuner/mllm_sft_video_example_data.jsonl": {"!type": 10},
    "xtuner/openai_sft.jsonl": {"list": 128},
    "xtuner/pretrain_example_data.jsonl": {"messages": 3},
}
"""What the files of corpora/jsonl are, with no mapping: documents by shape, and what has no shape, by reason.

Refused rightly: a record that holds `message` alone, questions in `turns` without an answer, an index of data sets, and
messages with a video in them.
"""


def test_thirty_one_files_of_real_records():
    folder = shared("corpora/jsonl")
    found = {}
    for path in sorted(path for path in folder.rglob("*.*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        with pa.OSFile(str(path)) as file:
            it = opened(file, format_of(name, "web"), name)
            found[name] = dict(Counter(shape(record, it) for record in records(it.stream, it.records, "s", 1 << 25)))
    assert found == SHAPES


def shape(record, it):
    try:
        return read_fields(record.raw, it.records, "web").shape
    except Reject as reject:
        return f"!{reject.reason}"


# Fields mapped


NESTED = {"data": {"body": {"text": "t"}, "id": 7}, "meta": {"url": "u", "when": 2020, "lang": "en"}, "a.b": "dotted"}


def test_a_path_into_nested_objects():
    mapping = {"text": "data.body.text", "url": "meta.url", "created": "meta.when", "language": "meta.lang"}
    found = fields(NESTED, **mapping)
    assert (found.text, found.url, found.created, found.shape) == ("t", "u", "2020", "mapped")
    assert json.loads(found.metadata) == {"data": {"id": 7}, "a.b": "dotted", "language": "en"}
    assert fields(NESTED, text="a.b").text == "dotted"
    assert fields({"choices": [{"text": "x"}, {"text": "y"}]}, text="choices.1.text").text == "y"


def test_a_template():
    record = {"title": "T", "body": "B", "n": 1}
    found = fields(record, text="{title}\n\n{body}")
    assert (found.text, found.shape, found.metadata) == ("T\n\nB", "template", '{"n":1}')
    assert fields({"title": None, "body": "B"}, text="{title}\n\n{body}").text == "B"
    assert refused({"other": "x"}, text="{title}\n\n{body}")[0] == "no_text"
    assert refused({"title": {}, "body": "B"}, text="{title}{body}") == ("type", "field title is an object, not text")


def test_mapped_messages_and_url_alone():
    found = fields({"data": {"turns": [{"from": "human", "value": "q"}]}}, messages="data.turns")
    assert turns(found) == [("user", "q")]
    assert fields({"text": "t", "link": "u"}, url="link") == ("t", None, None, "u", None, None, "text")


def test_a_mapping_that_leads_nowhere_names_the_fields():
    assert refused(NESTED, text="data.text") == (
        "no_text",
        "nothing at data.text (fields of its source in params.yaml); its fields: a.b, data, meta",
    )
    assert refused(NESTED, text="data")[0] == "type"
    assert refused(NESTED, text="a.b", url="meta")[1] == "field meta is an object, not text"


def test_nested_records_of_the_containers():
    path = shared("corpora/derived-containers/docs.nested.jsonl")
    first = json.loads(path.read_text().split("\n")[0])
    plain = [json.loads(line)["text"] for line in path.with_name("docs.jsonl").read_text().split("\n") if line]
    where = next(path for path in ("data.body.text", "data.text", "body.text", "doc.text") if reach(first, path))
    found = [
        read_fields(line.encode(), "jsonl", "web", How({"text": where})).text
        for line in path.read_text().split("\n")
        if line
    ]
    assert found == plain


def reach(value, path):
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


# Numbers


@pytest.mark.parametrize(
    ("number", "metadata"),
    [
        ("123456789012345678901234567890", '{"n":123456789012345678901234567890}'),
        ("18446744073709551616", '{"n":18446744073709551616}'),
        ("-9223372036854775809", '{"n":-9223372036854775809}'),
        ("1e16", '{"n":1e+16}'),
        ("1e300", '{"n":1e+300}'),
        ("0.1", '{"n":0.1}'),
        ("[[1.0, 2]]", '{"n":[[1.0,2]]}'),
        ("9007199254740993", '{"n":9007199254740993}'),
    ],
)
def test_numbers_keep_their_value(number, metadata):
    assert read_fields(b'{"text":"t","n":%s}' % number.encode(), "jsonl", "web").metadata == metadata


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.booleans())
def test_metadata_is_what_json_writes(others, escaped):
    others = {name: value for name, value in others.items() if name not in ("url", "created", "chosen")}
    record = {**others, "text": "t"}
    raw = json.dumps(record, ensure_ascii=escaped).encode("utf-8")
    others.pop("text", None)
    wanted = json.dumps(others, sort_keys=True, ensure_ascii=False, separators=(",", ":")) if others else None
    assert read_fields(raw, "jsonl", "web").metadata == wanted
