"""Peers of benchmarks/reading.py, in an environment of their own: `python peer_reading.py LIBRARY FILE`, JSON out."""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path


def pages(library, page_of):
    """The main text of each page."""
    if library == "resiliparse":
        from resiliparse.extract.html2text import extract_plain_text

        def read(page):
            return extract_plain_text(page, main_content=True)
    else:
        from trafilatura import extract

        def read(page):
            return extract(page, include_comments=False, favor_precision=library.endswith("precision")) or ""

    read(next(iter(page_of.values())))
    began = time.process_time()
    texts = {name: read(page) for name, page in page_of.items()}
    name, _, how = library.partition(", ")
    said = f"{name} {version(name)}" + (f", {how}" if how else "")
    return {"library": said, "texts": texts, "seconds": time.process_time() - began}


def languages(texts):
    """A code of each text."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    model = LanguageIdentifier.from_model_file(MODEL_FILE)
    model.classify("warm")
    began = time.process_time()
    codes = [str(model.classify(text)[0]) for text in texts]
    speed = sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - began)
    same = {"nb": "no"}
    known = sorted({same.get(code, code) for code in map(str, model.labels)})
    codes = [same.get(code, code) for code in codes]
    return {"library": f"py3langid {version('py3langid')}", "codes": codes, "known": known, "speed": speed}


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    print(json.dumps(languages(given) if sys.argv[1] == "py3langid" else pages(sys.argv[1], given)))
