"""What decontamination finds in corpora whose truth is known: `python -m benchmarks.decontaminate_recall FOLDER`.

In: a folder of corpora with eval/planted (documents with real items in nine disguises, and controls), the benchmarks
they come from, and eval/natural_overlap_13gram.tsv (records that share 13 words in a row with an item, by plain
comparison). Out: the table of docs/decontamination.md. The rules are those of params.yaml.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from tasks.decontaminate import DecontaminateParams
from tasks.decontaminate.matches import match
from tasks.project import checked

ROOT = Path(__file__).parents[1]
FILES = (
    "eval/gsm8k/train.first1500.jsonl",
    "jsonl/fastchat/vicuna_bench_question.jsonl",
    "jsonl/xtuner/gsm8k_val_example_data.jsonl",
)
"""Where natural overlaps were found."""


class Corpus:
    """Reads over texts and evaluation sets on disk."""

    name = "web-0"

    def __init__(self, texts: list[str], sets: dict[str, Path], answers: tuple[str, ...] = ()) -> None:
        self.texts, self.files = pa.table({"text": pa.array(texts, pa.large_string())}), sets
        digests = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sets.items()}
        fields = {name: sorted(lines_of(path)[0]) for name, path in sets.items()}
        self.spec = {
            "sets": [
                {"name": name, "sha256": digests[name], "format": "jsonl", "fields": fields[name], "passages": []}
                | {"answers": [field for field in fields[name] if field in answers]}
                for name in sorted(sets)
            ]
        }

    def path(self, name: str) -> Path:
        return self.files[name]

    def table(self, _folder: str, columns: list[str] | None = None, unit: str | None = None) -> pa.Table:
        return self.texts if columns is None else self.texts.select(columns)


def recipe() -> DecontaminateParams:
    """The section of the repository's params.yaml."""
    sections = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    return checked(DecontaminateParams, "decontaminate", sections["decontaminate"])


def found_in(corpus: Corpus) -> list[dict[str, Any]]:
    """The matches that are evidence."""
    lines = match(corpus, recipe()).files[".parquet"].to_pylist()  # type: ignore[arg-type]
    return [line for line in lines if line["rule"] != "question"]


def lines_of(path: Path) -> list[Any]:
    """The records of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def planted(corpora: Path) -> dict[str, Any]:
    """{"disguises": name -> (found, planted), "controls": (flagged, all), "others": (flagged, all)}."""
    documents = lines_of(corpora / "planted" / "docs.jsonl")
    with (corpora / "planted" / "truth.tsv").open(encoding="utf-8", newline="") as file:
        truth = {line["doc_id"]: line for line in csv.DictReader(file, delimiter="\t")}
    items = _items(corpora)
    with tempfile.TemporaryDirectory() as folder:
        sets = _written({name: [{"q": text} for _, text in of] for name, of in items.items()}, Path(folder))
        lines = found_in(Corpus([document["text"] for document in documents], sets))
    found = {
        (documents[line["row"]]["id"], items[line["set"]][int(line["item"].split(":")[0]) - 1][0]) for line in lines
    }
    flagged = {document for document, _ in found}
    disguises = Counter(one["kind"] for one in truth.values() if one["contaminated"] == "yes")
    hit = Counter(
        one["kind"]
        for document, one in truth.items()
        if one["contaminated"] == "yes" and (document, one["eval_item"]) in found
    )
    controls = {document for document, one in truth.items() if one["contaminated"] != "yes"}
    others = {document["id"] for document in documents} - set(truth)
    return {
        "disguises": {name: (hit[name], count) for name, count in disguises.items()},
        "controls": (len(controls & flagged), len(controls)),
        "others": (len(others & flagged), len(others)),
    }


def _items(corpora: Path) -> dict[str, list[tuple[str, str]]]:
    """Set -> (name in truth.tsv, question)."""
    gsm = lines_of(corpora / "gsm8k" / "test.jsonl")
    svamp = json.loads((corpora / "svamp" / "SVAMP.json").read_text(encoding="utf-8"))
    bench = lines_of(corpora / "mt_bench" / "question.jsonl")
    return {
        "gsm8k": [(f"gsm8k/test:{number}", one["question"]) for number, one in enumerate(gsm)],
        "svamp": [(f"svamp:{one['ID']}", f"{one['Body']} {one['Question']}") for one in svamp],
        "mt_bench": [(f"mt_bench:{one['question_id']}", one["turns"][0]) for one in bench],
    }


def _written(records: dict[str, list[dict[str, str]]], folder: Path) -> dict[str, Path]:
    paths = {name: folder / f"{name}.jsonl" for name in records}
    for name, of in records.items():
        paths[name].write_text("".join(json.dumps(one) + "\n" for one in of), encoding="utf-8")
    return paths


def natural(corpora: Path) -> tuple[int, int, int]:
    """(overlaps found, overlaps of the file, documents flagged besides)."""
    with (corpora / "eval" / "natural_overlap_13gram.tsv").open(encoding="utf-8", newline="") as file:
        wanted = {
            (line["file"], int(line["record_index"]), line["eval_item"])
            for line in csv.DictReader(file, delimiter="\t")
        }
    documents = [(name, number, _strings(one)) for name in FILES for number, one in enumerate(lines_of(corpora / name))]
    sources = {"gsm8k": "gsm8k/test.jsonl", "mt_bench": "mt_bench/question.jsonl"}
    texts = {
        name: [{"q": _strings(one)} for one in lines_of(corpora / "eval" / path)] for name, path in sources.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        lines = found_in(Corpus([text for _, _, text in documents], _written(texts, Path(folder))))
    found = {
        (*documents[line["row"]][:2], f"eval/{sources[line['set']]}:{int(line['item'].split(':')[0]) - 1}")
        for line in lines
    }
    besides = {place[:2] for place in found} - {place[:2] for place in wanted}
    return len(found & wanted), len(wanted), len(besides)


def _strings(value: Any) -> str:
    """All texts of a record."""
    if isinstance(value, dict | list):
        return "\n".join(map(_strings, value.values() if isinstance(value, dict) else value))
    return value if isinstance(value, str) else ""


def main() -> None:
    """Print the table."""
    corpora = Path(sys.argv[1])
    table = planted(corpora / "eval")
    print("| disguise | found | of |\n| --- | --- | --- |")
    for name, (found, count) in table["disguises"].items():
        print(f"| {name} | {found} | {count} |")
    for name, shown in (("controls", "controls flagged"), ("others", "other documents flagged")):
        print(f"| {shown} | {table[name][0]} | {table[name][1]} |")
    found, wanted, besides = natural(corpora)
    print(f"| natural overlaps of 13 words | {found} | {wanted} |")
    print(f"\nDocuments flagged besides the natural overlaps: {besides}.")


if __name__ == "__main__":
    main()
