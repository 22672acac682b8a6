"""English 7 : Chinese 3 out of one mixed source: domains from params.yaml to the batches, on the real nine steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import yaml

from flows.fetch import from_data, pin_files
from flows.pins import lay_pin
from tasks.artifacts.manifest import Manifest
from tasks.artifacts.shards import CLASSES, ShardReader
from tasks.artifacts.tables import read_table
from tasks.errors import ParamsError
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project
from tests.small_corpus import lay_corpus, paragraph
from training.order import Order
from training.pin import open_pin

PHRASES = (
    "水磨坊在河边", "农夫带着麦子", "石头转动起来", "面粉落进口袋", "秋天的风吹过山谷", "孩子们听着水声",
    "老人讲述从前的故事", "船从上游下来", "市场上的人很多", "夜里只有月亮", "春天雪化了", "他们一起吃面包",
)  # fmt: skip


def chinese(chance: random.Random) -> str:
    return "".join(chance.choice(PHRASES) + chance.choice("，。！") for _ in range(40))


@pytest.fixture(scope="module")
def mixed(tmp_path_factory) -> Path:
    """A corpus of one source, half English, half Chinese, built to the end and held against its suites."""
    root, chance = tmp_path_factory.mktemp("mixed"), random.Random(5)
    lay_corpus(root)
    pages = [paragraph(chance, 8) for _ in range(120)] + [chinese(chance) for _ in range(120)]
    chance.shuffle(pages)
    (root / "sources" / "mixed.jsonl").write_text("".join(json.dumps({"text": page}) + "\n" for page in pages))
    recipe = yaml.safe_load((root / "params.yaml").read_text())
    recipe["ingest"]["sources"] = [{"name": "mixed", "kind": "web", "path": "sources/mixed.jsonl"}]
    recipe["pack"]["domains"] = [{"name": "chinese", "languages": ["zh"]}]
    recipe["mix"] |= {"stages": [{"weights": {"mixed": 0.7, "chinese": 0.3}, "tokens": 64_000}], "max_epochs": 999}
    (root / "params.yaml").write_text(yaml.safe_dump(recipe, allow_unicode=True))
    build(root)
    return root


def build(root: Path) -> None:
    for step in STEPS.values():
        perform(step, Project(root))


def test_each_domain_has_its_own_shards_and_its_share(mixed: Path) -> None:
    project = Project(mixed)
    kept = [
        (row["domain"], row["language"], tokens)
        for part in Manifest.read(project.artifact("pack")).folders["splits"]
        for row, tokens in zip(
            read_table(project.artifact("pack") / "splits" / f"{part}.parquet").to_pylist(),
            read_table(project.artifact("tokenize") / "tokens" / f"{part}.parquet")["tokens"].to_pylist(),
            strict=True,
        )
    ]
    assert {domain for domain, language, tokens in kept if tokens and language == "zh"} == {"chinese"}
    assert {domain for domain, language, tokens in kept if language != "zh"} == {"mixed"}
    shards = project.artifact("shard")
    for domain in ("chinese", "mixed"):
        held = sum(len(ShardReader(path.parent, path.stem).tokens) for path in shards.glob(f"{domain}/*/*.bin"))
        assert held == sum(tokens for name, _, tokens in kept if name == domain) > 1000
    mixture = json.loads((project.artifact("mix") / "mixture.json").read_text())
    assert mixture["stages"][0]["achieved"] == {"chinese": 0.3, "mixed": 0.7}


def test_held_out_documents_say_their_kind_and_language(mixed: Path) -> None:
    shards = Project(mixed).artifact("shard")
    found = {path.parts[-3]: np.load(path) for path in shards.glob("*/validation/*.classes.npy")}
    assert set(found) == {"chinese", "mixed"} and not list(shards.glob("*/train/*.classes.npy"))
    for domain, classes in found.items():
        assert classes.dtype == CLASSES and len(classes) and set(classes["kind"]) == {b"web"}
        assert (set(classes["language"]) == {b"zh"}) == (domain == "chinese")


def test_the_run_draws_seven_to_three(mixed: Path) -> None:
    project = Project(mixed)
    fingerprint = Manifest.read(project.artifact("mix")).fingerprint
    lay_pin(mixed, fingerprint, None, pin_files(project), from_data(project))
    order = Order(open_pin(fingerprint, mixed).schedule)
    drawn = np.bincount(order.at(np.arange(1000)).source)
    assert dict(zip(order.sources, drawn.tolist(), strict=True)) == {"chinese": 300, "mixed": 700}


def test_a_domain_that_selects_nothing_stops_pack_by_name(mixed: Path) -> None:
    recipe = yaml.safe_load((mixed / "params.yaml").read_text())
    before = Manifest.read(Project(mixed).artifact("pack"))
    wrong = recipe | {"pack": recipe["pack"] | {"domains": [{"name": "thai", "languages": ["th"]}]}}
    (mixed / "params.yaml").write_text(yaml.safe_dump(wrong))
    try:
        with pytest.raises(
            ParamsError, match=r"pack\.domains: 'thai' selects no document that was kept; there are: mixed"
        ):
            perform(STEPS["pack"], Project(mixed))
        assert Manifest.read(Project(mixed).artifact("pack")) == before
    finally:
        (mixed / "params.yaml").write_text(yaml.safe_dump(recipe, allow_unicode=True))
