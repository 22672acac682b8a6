"""A project of about a hundred documents for tests of the whole pipeline; no test of its own."""

import json
import random
import shutil
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
STORY = """the mill stands by the river and grinds grain into flour while water turns its wheel slowly
a miller listens for stones that run dry because dry stones burn meal before anyone smells it carts
come down from the hills in autumn with barley oats rye and sometimes news of other valleys"""
WORDS = STORY.split()


def sentence(chance, words=14):
    return " ".join(chance.choice(WORDS) for _ in range(words)).capitalize() + "."


def paragraph(chance, sentences=8):
    return " ".join(sentence(chance) for _ in range(sentences))


def lay_corpus(root: Path, shuffled: random.Random | None = None) -> None:
    """Write sources, an evaluation set, params and suites below `root`; files are created in `shuffled` order."""
    chance = random.Random(11)
    files = {f"prose/{number:02}.txt": paragraph(chance, 10) for number in range(24)}
    files |= {f"code/{number:02}.py": _program(chance, number) for number in range(12)}
    pages = [
        {"text": paragraph(chance, chance.randint(4, 12)), "url": f"https://a.example/{number}"} for number in range(50)
    ]
    pages += [pages[3], {"text": pages[4]["text"] + " Once more."}, {"text": "tiny"}, {"title": "no text"}]
    question = paragraph(chance, 2)
    pages.append({"text": f"{paragraph(chance, 3)} {question} {paragraph(chance, 3)}"})
    files["web.jsonl"] = "".join(json.dumps(page) + "\n" for page in pages) + "{broken\n"
    files["chats.jsonl"] = "".join(_chat(chance) for _ in range(20))
    names = list(files)
    (shuffled or random.Random(0)).shuffle(names)
    for name in names:
        path = root / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name])
    (root / "evaluation.jsonl").write_text(json.dumps({"question": question}) + "\n")
    (root / "params.yaml").write_text(yaml.safe_dump(_recipe()))
    for name in ("expectations", "tokenizers"):
        shutil.copytree(ROOT / name, root / name, dirs_exist_ok=True)


def _program(chance, number):
    lines = [f"def grind_{number}(grain):", '    """Grind it."""']
    lines += [f"    {chance.choice(WORDS)}_{line} = grain * {chance.randrange(99)}" for line in range(8)]
    return "\n".join([*lines, "    return grain", ""])


def _chat(chance):
    talk = [("user", sentence(chance)), ("assistant", paragraph(chance, 3))]
    return json.dumps({"messages": [{"role": role, "content": text} for role, text in talk]}) + "\n"


def _recipe():
    recipe = yaml.safe_load((ROOT / "params.yaml").read_text())
    kinds = {"prose": "book", "code": "code", "web.jsonl": "web", "chats.jsonl": "chat"}
    recipe["ingest"] |= {
        "sources": [
            {"name": path.split(".")[0], "kind": kind, "path": f"sources/{path}"} for path, kind in kinds.items()
        ],
        "part_bytes": 4096,
        "part_bytes_max": 16384,
        "small_file_bytes": 2048,
    }
    recipe["decontaminate"]["sets"] = [{"name": "qa", "path": "evaluation.jsonl", "fields": ["question"]}]
    recipe["pack"] |= {"tokens_per_sequence": 64, "group_bytes": 8192, "validation_share": 0.1, "test_share": 0.1}
    recipe["mix"] |= {"stages": [{"start": 0, "weights": {"prose": 2, "code": 1, "web": 2, "chats": 1}}]}
    return recipe
