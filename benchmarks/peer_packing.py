"""Peers' packing in the peers' environment: python peer_packing.py NAME LENGTHS ROOM -> one JSON line.

LENGTHS: a .npy of document lengths; ROOM: the ids of a sequence. seconds: CPU seconds of this process; documents: how
many of them were packed; sequences, places (ids that fit all of them), tokens: what came out, cut (ids lost).
"""

import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FEWER = {"llamafactory": 50_000, "trl bfd_split": 100_000, "trl bfd": 100_000, "trl wrapped": 100_000}


def trl(lengths: Any, room: int, strategy: str) -> dict[str, Any]:
    """pack_dataset as its trainers call it, documents as lists of int32."""
    import pyarrow as pa
    from datasets import Dataset, disable_caching, disable_progress_bars
    from trl import pack_dataset

    disable_caching()
    disable_progress_bars()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    ids = pa.ListArray.from_arrays(offsets, pa.array(np.zeros(offsets[-1], np.int32)))
    given = Dataset(pa.table({"input_ids": ids}))
    pack_dataset(given.select(range(10)), room, strategy)
    began = time.process_time()
    packed = pack_dataset(given, room, strategy)
    seconds = time.process_time() - began
    tokens = sum(len(own) for chunk in packed.data["input_ids"].chunks for own in chunk)
    return {"seconds": seconds, "sequences": len(packed), "tokens": tokens}


def llamafactory(lengths: Any, room: int) -> dict[str, Any]:
    """greedy_knapsack, which its processor gives lengths up to the room; longer documents are dropped, as there."""
    home = Path(str(importlib.util.find_spec("llamafactory").origin)).parent
    spec = importlib.util.spec_from_file_location("processor_utils", home / "data/processor/processor_utils.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)  # the package itself would import all of its dependencies
    given = lengths[lengths <= room].tolist()
    began = time.process_time()
    packed = module.greedy_knapsack(given, room)
    return {"seconds": time.process_time() - began, "sequences": len(packed), "tokens": sum(map(sum, packed))}


def main(name: str, path: str, room: str) -> None:
    lengths = np.load(path)[: FEWER[name]]
    library, _, strategy = name.partition(" ")
    work: Callable[..., dict[str, Any]] = trl if library == "trl" else llamafactory
    found = work(lengths, int(room), *([strategy] if strategy else []))
    found |= {"documents": len(lengths), "cut": int(lengths.sum()) - found["tokens"]}
    print(json.dumps(found | {"places": found["sequences"] * int(room)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
