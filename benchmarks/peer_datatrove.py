"""CPU seconds of DataTrove's filters over the documents of a JSON Lines file. Runs in the peers' environment.

`python peer_datatrove.py FILE`: prints {"seconds": of all four filters}. Each filter sees every document, as ours
measures all signals of every document: a chain that stops at the first breach would measure less of the later ones.
"""

import json
import sys
import time
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
)


def main(path: str) -> None:
    texts = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    filters = [GopherRepetitionFilter(), GopherQualityFilter(), C4QualityFilter(), FineWebQualityFilter()]
    for one in filters:
        one.filter(Document(text=texts[0], id="0"))  # loads its tokenizer
    began = time.process_time()
    for text in texts:
        for one in filters:
            one.filter(Document(text=text, id="0"))
    print(json.dumps({"seconds": time.process_time() - began}))


if __name__ == "__main__":
    main(sys.argv[1])
