"""Real text through a tokenizer trained on part of it: it comes back, and long texts have the ids of whole ones."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tasks.tokenizers import load, train
from tests.tokenizer_kit import lay, recipe
from tests.tokenizer_kit import texts as small_texts

CORPORA = Path(__file__).parent.parent.parent / "shared/corpora"
PART = 20_000


def files():
    """Path -> texts of each file of books, code and text-unicode; what is no UTF-8 is left to ingest."""
    found = {}
    for path in sorted(path for name in ("books", "code", "text-unicode") for path in (CORPORA / name).rglob("*")):
        if not path.is_file():
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue
        lines = [json.loads(line)["content"] for line in text.splitlines()] if path.suffix == ".jsonl" else [text]
        found[path.relative_to(CORPORA).as_posix()] = lines
    return found


def come_back(found, tokenizer):
    """Files of which some text does not come back, or becomes a control piece."""
    control, wrong = np.array(sorted(tokenizer.control.values())), []
    for name, texts in found.items():
        ids, lengths = tokenizer.encode_batch(texts)
        stops = np.cumsum(lengths)
        back = [tokenizer.decode(ids[stop - size : stop]) for stop, size in zip(stops, lengths, strict=True)]
        if back != texts or np.isin(ids, control).any():
            wrong.append(name)
    return wrong


@pytest.fixture(scope="module")
def found():
    if not CORPORA.is_dir():
        pytest.skip("the shared corpora are not here")
    return files()


def trained_on(found, root, **changes):
    sample = [text[:PART] for texts in found.values() for text in texts[:3]]
    train("real", sample, recipe(vocab_size=6000, character_coverage=0.99, **changes), root)
    return load(root / "tokenizers/real")


@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_the_beginning_of_every_file_comes_back(found, tmp_path, model):
    assert len(found) > 20
    tokenizer = trained_on(found, tmp_path, model=model)
    assert come_back({name: [text[:PART] for text in texts[:20]] for name, texts in found.items()}, tokenizer) == []


@pytest.mark.long
@pytest.mark.parametrize("model", ["bpe", "unigram"])
def test_every_file_comes_back_whole(found, tmp_path, model):
    assert come_back(found, trained_on(found, tmp_path, model=model)) == []


HUGE = """
import resource, sys, numpy as np
from pathlib import Path
from tasks.tokenizers import load
from tests.tokenizer_kit import texts
tokenizer = load(Path(sys.argv[1]))
unit = " ".join(texts()) + "\\n"
tokenizer.encode_batch([unit * 20])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ids, lengths = tokenizer.encode_batch([unit * (int(sys.argv[2]) // len(unit.encode()) + 1)])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
whole = tokenizer._whole(unit * 3)
step = (len(tokenizer._whole(unit * 4)) - len(whole))
print(after - before, len(ids), step, int((ids[: len(whole)] == whole).all()), int(lengths.sum() == len(ids)))
"""


def test_a_document_of_64_mb_is_encoded_in_bounded_pieces(tmp_path):
    """Memory grows with the ids (4 bytes each, held twice while they are joined) and one copy of the bytes."""
    lay(tmp_path)
    size = 64 << 20
    command = [sys.executable, "-c", HUGE, str(tmp_path / "tokenizers/small"), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    grown, ids, step, same, whole = map(int, done.stdout.split())
    unit = len((" ".join(small_texts()) + "\n").encode())
    assert same and whole
    assert ids == step * (size // unit + 1)
    assert grown * 1024 < 3 * size + 8 * ids
