"""A small sound artifact of each step as its suite sees it: folders, params, rows and counts by unit."""

from types import SimpleNamespace

from tasks.artifacts.verdicts import SIGNALS

CODE, WEB = "code-00000000000000aa", "web-00000000000000bb"
GROUPS = ("code-train-00000000000000aa", "web-validation-00000000000000bb", "web-test-00000000000000cc")
SHARDS = ("code/train/shard_00000", "web/train/shard_00000")


def named(*names, **more):
    return [SimpleNamespace(name=name, **more) for name in names]


def documents(**columns):
    """Two units with one row each; a tuple gives each unit its own value."""
    return by_unit((CODE, WEB), part=(CODE, WEB), row=0, source=("code", "web"), **columns)


def by_unit(units, **columns):
    return {
        unit: [{name: value[at] if isinstance(value, tuple) else value for name, value in columns.items()}]
        for at, unit in enumerate(units)
    }


def counts(*units, **measures):
    """The same counts for each unit; __ stands for | and = in names: dropped__rule__near."""
    plain = {}
    for name, number in measures.items():
        measure, _, cell = name.partition("__")
        plain[f"{measure}|{cell.replace('__', '=')}" if cell else measure] = number
    return {unit: dict(plain) for unit in units}


FLOW = {"documents_in": 10, "documents_kept": 9, "documents_dropped": 1}
ENGLISH = {"documents__language__en": 10, "kept__language__en": 9}
DROPPED = {"verdict": ("keep", "drop")}

MEASURED = {field.name: 1 if field.type == "int64" else 0.1 for field in SIGNALS}
MEASURED |= {"characters": (70, 5), "bytes": (71, 5), "language": ("en", "und"), "language_score": 0.9}

MIXED = {f"{measure}__source__{name}": 9 for measure in ("sequences", "quota") for name in ("code", "web")}
MIXTURE = counts("mixture", **MIXED)

ENCODED = {"characters_in": 700, "characters_kept": 630, "bytes": 640, "tokens": 200, "unknown": 0, "learnt": 200}

SOUND = {
    "ingest": (
        ("rejects", "documents"),
        {"sources": named("code", "web")},
        documents(id="0f" * 16, kind=("code", "web"), characters=7, bytes=8),
        {
            "rejects": counts(CODE, WEB, rejected=1),
            "documents": counts(CODE, WEB, documents_out=9, characters_out=90, bytes_out=91),
        },
    ),
    "normalize": (
        ("text",),
        {},
        documents(id="0f" * 16, text_sha="0f" * 32, kind=("code", "web"), characters=7, bytes=8),
        {"text": counts(CODE, WEB, documents_in=9, documents_out=9, characters_in=90, characters_out=88)},
    ),
    "filter": (
        ("signals", "verdicts"),
        {"rules": named("too_short", signal="characters")},
        documents(
            **MEASURED,
            **DROPPED,
            rule=(None, "too_short"),
            value=(None, 5.0),
            limit=(None, 50.0),
        ),
        {
            "signals": counts(CODE, WEB, documents_in=10),
            "verdicts": counts(CODE, WEB, **FLOW, **ENGLISH, dropped__rule__too_short=1, fired__rule__too_short=1),
        },
    ),
    "dedup": (
        ("sketches", "verdicts"),
        {},
        by_unit(
            (CODE, WEB),
            **DROPPED,
            rule=(None, "near"),
            survivor_part=(None, CODE),
            survivor_row=(None, 0),
            similarity=(None, 0.9),
            characters=70,
            words=12,
            shingles=8,
            unit="words",
        ),
        {
            "sketches": counts(CODE, WEB, documents_in=11),
            "verdicts": counts(CODE, WEB, **FLOW, dropped__rule__near=1, dropped__rule__exact=1),
        },
    ),
    "decontaminate": (
        ("certificate", "verdicts"),
        {"sets": named("exam")},
        documents(verdict=("cut", "drop"), rule="exam", item="3:question", grams=4),
        {
            "certificate": counts(
                "certificate",
                items__set__exam=9,
                items_matched__set__exam=1,
                documents_dropped=2,
                planted__disguise__verbatim=9,
                found__disguise__verbatim=9,
            ),
            "verdicts": counts(CODE, WEB, documents_in=100, documents_dropped=1, documents_cut=1),
        },
    ),
    "tokenize": (
        ("tokens",),
        {},
        documents(
            tokens=(20, 0),
            reason=(None, "filter:too_short"),
            characters=70,
            characters_kept=(70, 0),
            characters_cut=0,
            separators=0,
            bytes=(71, 0),
            unknown=0,
            learnt=(20, 0),
        ),
        {"tokens": counts(CODE, WEB, **FLOW, **ENCODED)},
    ),
    "pack": (
        ("splits", "pieces", "sequences"),
        {},
        by_unit(
            GROUPS,
            group=GROUPS,
            source=("code", "web", "web"),
            split=("train", "validation", "test"),
            start=0,
            stop=65,
            tokens=65,
        ),
        {
            "splits": counts(
                CODE,
                WEB,
                documents__split__train=8,
                tokens__split__train=900,
                documents__split__validation=1,
                tokens__split__validation=50,
                documents__split__test=1,
                tokens__split__test=50,
            ),
            "pieces": counts(*GROUPS, tokens_in=66, documents_in=9, parts=1, tokens_stream=66),
            "sequences": counts(
                *GROUPS,
                tokens_in=66,
                tokens_packed=65,
                tokens_dropped=1,
                tokens_repeated=0,
                sequences=1,
                places=65,
                padding=0,
            ),
        },
    ),
    "shard": (
        ("sequences", "stream"),
        {},
        by_unit(
            SHARDS,
            source=("code", "web"),
            split="train",
            shard="shard_00000",
            tokens=66,
            sequences=1,
            bytes=132,
            documents=9,
        ),
        {
            "sequences": counts(*SHARDS, sequences=1, tokens_covered=65),
            "stream": counts(*SHARDS, tokens=66, documents=9, bytes=132),
        },
    ),
    "mix": (
        ("mixture",),
        {},
        {
            "mixture": [
                {"stage": 0, "start": 0, "positions": 18, "source": name, "weight": 0.5, "quota": 32}
                | {"share": 0.5, "sequences": 9, "tokens": 99, "epochs": 1.0}
                for name in ("code", "web")
            ]
        },
        {"mixture": MIXTURE},
    ),
}
