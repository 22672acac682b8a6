"""The params.yaml of a new corpus: the repository's own, with other sources and sizes.

In: the text of the repository's params.yaml and what was found. Out: text with all its comments, so that no
rule and no default is written down twice. It knows keys by their line, as a parser would lose the comments.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from flows.found import Found
from flows.presets import Preset, load_preset
from tasks.errors import ParamsError

HEAD = """\
# The recipe of this corpus: every number that shapes its data. One section per step, in order; then train and
# run. After a change, `gristmill status` says what must be made anew; `gristmill build` makes just that.
"""


SETS = "tasks/filter/presets; docs/filter.md says what each follows"


class Setting(NamedTuple):
    """A value that a new corpus starts with. advice: when to change it, put above it as a comment."""

    section: str
    key: str
    value: str
    advice: str


SETTINGS = (
    Setting("ingest", "part_bytes", "524_288", "Makes some 40 parts of 20 MB. Above 10 GB take 16_777_216."),
    Setting(
        "ingest",
        "part_bytes_max",
        "2_097_152",
        "Four times part_bytes leaves the cut enough room; above 10 GB 67_108_864.",
    ),
    Setting("ingest", "small_file_bytes", "131_072", "Above 10 GB take 1_048_576."),
    Setting("tokenize", "tokenizer", "demo", "Made once: gristmill tokenizer train demo"),
    Setting(
        "tokenize",
        "vocab_size",
        "8_000",
        "Enough for 20 MB. Above 1 GB take 32_000, in many languages 64_000.",
    ),
    Setting(
        "pack",
        "tokens_per_sequence",
        "256",
        "What a laptop trains on in minutes. In earnest take 2048 or more.",
    ),
    Setting(
        "mix", "max_epochs", "4", "Beyond 4 passes repetition costs (arXiv 2305.16264); a stage that needs more fails."
    ),
    Setting("pack", "group_bytes", "1_048_576", "Several shards even of 20 MB. Above 10 GB take 268_435_456."),
)


def write_recipe(template: str, sources: Sequence[Found], sets: Sequence[str], preset: str | None = None) -> str:
    """The text of params.yaml. template: the repository's; sets: names of the evaluation sets in evaluation/; preset: a
    recipe of flows.presets, whose values and rules go before ours.

    Raises ParamsError where the template lacks a key that is to be set.
    """
    chosen = load_preset(preset) if preset else None
    text = _headed(template, preset, chosen)
    for setting in SETTINGS:
        if not chosen or (setting.section, setting.key) not in chosen.keys:
            text = _with_value(text, setting)
    if chosen:
        for name, value in chosen.values.items():
            section, _, key = name.partition(".")
            text = _with_value(text, Setting(section, key, str(value), f"Of the recipe {preset}."))
        rules = "".join(f"    {line}\n" for line in chosen.rules.splitlines())
        text = _with_block(text, "filter", "rules", f"  # Of the recipe {preset}; presets: {SETS}.\n  rules:\n{rules}")
    known = [item for item in sources if not item.unknown]
    text = _with_block(text, "ingest", "sources", _sources(sources))
    text = _with_block(text, "decontaminate", "sets", _sets(sets))
    return _with_block(text, "mix", "stages", _stages(known))


def weigh(sources: Sequence[Found]) -> dict[str, float]:
    """source -> weight in thousandths, by its share of the bytes: every source is read about equally often, so that no
    small one repeats before somebody chose so.
    """
    whole = sum(max(1, item.bytes) for item in sources)
    return {item.name: max(1, round(1000 * max(1, item.bytes) / whole)) / 1000 for item in sources}


def _headed(template: str, name: str | None, chosen: Preset | None) -> str:
    """The template from its first section on, and the comments right above that, under our own head."""
    lines = template.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if re.match(r"[a-z]", line)), len(lines))
    about = f"# Recipe {name}. {chosen.about}" if chosen else ""
    told = "\n# ".join(textwrap.wrap(about, 116)) + "\n" if about else ""
    return HEAD + told + "\n" + "".join(lines[first:])


def _with_value(text: str, setting: Setting) -> str:
    start, stop = _section(text, setting.section)
    pattern = re.compile(rf"^( +){setting.key}:[ ]*[^\s#]+", re.MULTILINE)
    match = pattern.search(text, start, stop)
    if match is None:
        raise _lacking(setting.section, setting.key)
    indent = match[1]
    line = f"{indent}# {setting.advice}\n{indent}{setting.key}: {setting.value}"
    return text[: match.start()] + line + text[match.end() :]


def _with_block(text: str, section: str, key: str, block: str) -> str:
    """The text with the key at the section's first level, and all that stands deeper below it, put anew."""
    start, stop = _section(text, section)
    pattern = re.compile(rf"^  {key}:.*\n(?:    .*\n|  - .*\n)*", re.MULTILINE)
    match = pattern.search(text, start, stop)
    if match is None:
        raise _lacking(section, key)
    return text[: match.start()] + block + text[match.end() :]


def _section(text: str, name: str) -> tuple[int, int]:
    begin = re.search(rf"^{name}:.*\n", text, re.MULTILINE)
    if begin is None:
        raise _lacking(name, "a mapping")
    after = re.compile(r"^[a-z]", re.MULTILINE).search(text, begin.end())
    return begin.start(), after.start() if after else len(text)


def _lacking(section: str, key: str) -> ParamsError:
    return ParamsError(f"the repository's params.yaml lacks {key} in {section}", "restore it: git checkout params.yaml")


def _sources(sources: Sequence[Found]) -> str:
    kinds = "  # The kind decides on rules and thresholds, so correct a wrong guess.\n"
    return kinds + "  sources:\n" + "".join(_source(item) for item in sources)


def _source(item: Found) -> str:
    size = f"{_plural(item.files, 'file')}, {_plural(item.bytes, 'byte')}"
    fields = ", ".join(f"{name}: {_scalar(path)}" for name, path in item.fields.items())
    entry = f"{{name: {item.name}, kind: {item.kind}, path: {_scalar(item.path)}"
    if item.unknown:
        told = f"    # Left out, since no record of it has a shape that is known: {_comment(item.unknown)}.\n"
        return told + f"    # - {entry}, fields: {{text: NAME}}}}\n"
    shape = f"    # {item.name}: {_comment(item.shape)}\n" if item.shape else ""
    return shape + f"    - {entry}{f', fields: {{{fields}}}' if fields else ''}}}  # {size}\n"


def _comment(text: str) -> str:
    """Names of fields and files within a comment: whatever they hold, it stays one line."""
    return json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')[:400]


def _sets(names: Sequence[str]) -> str:
    if names:
        lines = [f"    - {{name: {name}, path: evaluation/{name}.jsonl, fields: {FIELDS}}}" for name in names]
        return "  sets:\n" + "\n".join(lines) + "\n"
    return (
        "  # None yet, and the certificate says so. Name the sets that measure your models, such as\n"
        f"  #   - {{name: qa, path: evaluation/qa.jsonl, fields: {FIELDS}}}\n"
        "  sets: []\n"
    )


FIELDS = "[question, answer, passage]"


def _stages(sources: Sequence[Found]) -> str:
    weights = "".join(f"        {name}: {weight}\n" for name, weight in weigh(sources).items())
    return (
        "  # To begin with, the square root of each source's size: small sources are read the more often.\n"
        "  stages:\n    - start: 0\n      weights:\n" + weights
    )


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)


def _scalar(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_./][A-Za-z0-9_./\-]*", text) else json.dumps(text, ensure_ascii=False)
