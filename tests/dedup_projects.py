"""Small projects whose dedup is built for real: sources of JSON Lines, the recipe of the house, steps up to dedup."""

import json
import random
import shutil
from pathlib import Path

import yaml

from tasks.artifacts.manifest import Manifest
from tasks.artifacts.tables import read_table
from tasks.perform import perform
from tasks.pipeline import STEPS
from tasks.project import Project

ROOT = Path(__file__).parent.parent
UNTIL_DEDUP = ("ingest", "normalize", "filter", "dedup")


def near_texts(seed, groups, length=40):
    """Of each group a text, a near copy and now and then an exact one, as (words, seed) say."""
    rng = random.Random(seed)
    for group in range(groups):
        words = [f"w{rng.randrange(3000)}" for _ in range(length)]
        yield " ".join(words)
        changed = list(words)
        for place in rng.sample(range(length), rng.randrange(4)):
            changed[place] = f"x{place}y{group}"
        yield " ".join(changed)


def lay(root, sources, **dedup):
    """A project: {source: {file: [text]}}; `dedup` changes that section of the recipe."""
    root.mkdir(parents=True, exist_ok=True)
    shutil.copytree(ROOT / "expectations", root / "expectations", dirs_exist_ok=True)
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    recipe["ingest"]["sources"] = [{"name": name, "kind": "web", "path": f"texts/{name}"} for name in sources]
    recipe["ingest"] |= {"part_bytes": 4096, "part_bytes_max": 16384, "small_file_bytes": 1024}
    recipe["filter"]["rules"] = [{"name": "short", "signal": "words", "min": 3}]
    recipe["dedup"] |= {"removed_share_max": {"*": 1.0}} | dedup
    (root / "params.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    for name, files in sources.items():
        folder = root / "texts" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for file, texts in files.items():
            lines = [json.dumps({"text": text}) for text in texts]
            (folder / f"{file}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def build(root, **hands):
    """The report of dedup, the steps before it built by this process."""
    for name in UNTIL_DEDUP[:-1]:
        perform(STEPS[name], Project(root))
    return perform(STEPS["dedup"], Project(root), **hands)


def tree(root, step="dedup"):
    """path -> bytes of an artifact."""
    home = root / "data" / step
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def verdicts(root):
    """{id: (verdict, rule, the survivor's id, similarity)}; a release's survivor is "<release>/<part>" and its row."""
    home = root / "data"
    units = list(Manifest.read(home / "dedup").folders["verdicts"])
    ids = {unit: read_table(home / "normalize/text" / f"{unit}.parquet", ["id"])["id"].to_pylist() for unit in units}
    found = {}
    for unit in units:
        for at, line in enumerate(read_table(home / "dedup/verdicts" / f"{unit}.parquet").to_pylist()):
            part, row = line["survivor_part"], line["survivor_row"]
            survivor = ids[part][row] if part in ids else part and f"{part} {row}"
            found[ids[unit][at]] = (line["verdict"], line["rule"], survivor, line["similarity"])
    return found


def record(root, name, of):
    """releases/<name>.json in `root`, of what stands in the project `of`, as far as tasks.against reads it."""
    steps = {step: {"content": Manifest.read(of / "data" / step).content} for step in ("normalize", "dedup")}
    path = root / "releases" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"name": name, "fingerprint": "0" * 64, "created": "2026", "steps": steps}))
