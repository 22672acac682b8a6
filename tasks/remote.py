"""Files behind a URL (s3://, gs://, https:// and whatever fsspec knows): what lies there, and its bytes.

In: a URL and storage options of params.yaml. Out: paths with size and tag, and a file's bytes in blocks. It keeps
nothing on disk (tasks.homes does) and decides nothing about formats. Credentials come from the environment alone, where
each protocol's own library looks for them; a URL or an option that holds one is refused, since params.yaml, dvc.lock
and releases would carry it on. What may pass is tried again with waits between; nothing that is said holds a query or
a user's name.
"""

from __future__ import annotations

import errno
import inspect
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from tasks.errors import ParamsError, SourceError
from tasks.tags import Facts, facts_of

BLOCK = 8 << 20
WAITS = (0.5, 2.0, 5.0)
"""Seconds before each new try of what may pass."""

WEB = frozenset({"http", "https"})
EXTRAS = {"s3": "gristmill[s3]", "s3a": "gristmill[s3]"}
PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs", "http": "aiohttp"} | {
    "https": "aiohttp",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "hf": "huggingface_hub",
    "oci": "ocifs",
    "oss": "ossfs",
}
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "abfs": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "http": "a line of ~/.netrc",
}
ALIASES = {"s3a": "s3", "gcs": "gs", "abfss": "abfs", "az": "abfs", "https": "http"}

_PASSING = """
ClientConnectionError ClientPayloadError ConnectTimeoutError ConnectionError CutOff FSTimeoutError HTTPClientError
HttpError IncompleteRead IncompleteReadError ReadTimeoutError ResponseStreamingError ServerDisconnectedError
ServiceUnavailable SlowDown TimeoutError
"""
PASSING = frozenset(_PASSING.split())
"""Names of errors, or of what they derive from, that another try may pass; libraries' own, so known by name alone."""

BUSY = (errno.EBUSY, errno.EIO, errno.ETIMEDOUT)

_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*)://")
_SECRET = re.compile(r"key|secret|token|passw|credential|sas|auth|signature|user|cookie|headers", re.IGNORECASE)
_PRIVATE = ((re.compile(r"//[^/@\s'\"]*@"), "//"), (re.compile(r"\?[^\s'\"]*"), ""))
T = TypeVar("T")


class CutOff(OSError):
    """A transfer ended before its end."""


def is_url(path: str) -> bool:
    """Whether a path of params.yaml is a URL."""
    return bool(_URL.match(path)) or "::" in path


def cleaned(text: str) -> str:
    """The first line of what a library says, without user names, passwords and queries of URLs."""
    said = text.strip().split("\n")[0][:300]
    for pattern, instead in _PRIVATE:
        said = pattern.sub(instead, said)
    return said


@dataclass(frozen=True)
class Remote:
    """A URL's place. url: a folder's or a file's; options: of the file system; named: stands for it in errors."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    named: str = "source"

    def refuse(self) -> None:
        """Raise ParamsError where the URL or an option is none that may stand in params.yaml."""
        if "::" in self.url or self.protocol in ("file", "local"):
            raise ParamsError(f"{self.named}: {cleaned(self.url)} is no plain URL", "name one protocol, or a path")
        secret = next((name for name, value in _flat(self.options) if _may_be_secret(name, value)), None)
        if re.search(r"//[^/]*@", self.url) or "?" in self.url or secret:
            what = f"storage.{secret}" if secret else "its URL"
            raise ParamsError(
                f"{self.named}: {what} may hold a credential, and params.yaml goes into git and releases",
                f"take it out; they are read from the environment, as {self._credentials}",
            )

    @property
    def protocol(self) -> str:
        found = _URL.match(self.url)
        return found[1].lower() if found else ""

    @property
    def said(self) -> str:
        """The URL as people may read it."""
        return cleaned(self.url)

    @property
    def parts(self) -> tuple[str, ...]:
        """The place's name piece by piece, to see whether one lies in another."""
        known = ALIASES.get(self.protocol, self.protocol)
        there = _URL.sub("", self.url).rstrip("/").split("/")
        return (f"{known}://{self.options.get('endpoint_url', '')}", *there)

    def listed(self) -> dict[str, Facts]:
        """The files, by their paths below the URL (its own name where it is a file), sorted by code point.

        Names that begin with a dot and __pycache__ are passed over. Raises SourceError where nothing can be listed.
        """
        found = self.tried(self._listed)
        return {path: found[path] for path in sorted(found)}

    def facts(self, path: str) -> Facts:
        """A file's size and tag as they are now."""
        return self.tried(lambda: facts_of(self._info(self._at(path))))

    def blocks(self, path: str, size: int) -> Iterator[bytes]:
        """A file's bytes from front to end. What breaks off goes on where it was, a few times."""
        done, tries = 0, 0
        while True:
            try:
                for block in self._read(self._at(path), done):
                    done, tries = done + len(block), 0
                    yield block
                if done < size:
                    raise CutOff(f"{done} of {size} bytes of {path} came")
                return
            except Exception as error:
                self._again(error, tries, path)
                tries += 1

    def tried(self, work: Callable[[], T]) -> T:
        """What `work` gives, tried again where its error may pass; raises SourceError that says what to do."""
        tries = 0
        while True:
            try:
                return work()
            except Exception as error:
                self._again(error, tries)
                tries += 1

    @cached_property
    def _files(self) -> Any:
        import fsspec

        try:
            known = fsspec.get_filesystem_class(self.protocol)
        except ImportError as error:
            package = EXTRAS.get(self.protocol) or PACKAGES.get(self.protocol)
            mend = f"install what does: pip install '{package}'" if package else cleaned(str(error))
            raise SourceError(f"{self.named}: nothing here can read {self.protocol}:// URLs", mend) from error
        except ValueError as error:
            raise SourceError(
                f"{self.named}: no protocol is known as {self.protocol}", "see fsspec's list; s3, gs, https are some"
            ) from error
        taken = {name for kind in known.__mro__ for name in inspect.signature(kind.__init__).parameters}
        unknown = sorted(set(self.options) - taken)
        if unknown:
            options = ", ".join(sorted(name for name in taken - {"self", "args", "kwargs"} if not _SECRET.search(name)))
            raise ParamsError(
                f"{self.named}: storage.{unknown[0]} is no option of {self.protocol}", f"it has {options}"
            )
        ours = {"client_kwargs": {"trust_env": True}} if self.protocol in WEB else {}
        return known(**{**ours, "use_listings_cache": False, **self.options})

    def _listed(self) -> dict[str, Facts]:
        self._files.invalidate_cache()
        url = self.url.rstrip("/")
        name = PurePosixPath(url).name
        if self.protocol in WEB and PurePosixPath(name).suffix:
            return {unquote(name): facts_of(self._info(url))}
        root = self._files._strip_protocol(url)
        found = self._files.find(root, detail=True)
        if set(found) == {root}:
            return {name: facts_of(found[root] or self._info(root))}
        if not found:
            self._info(root)
        paths = {self._below(root, where): info for where, info in found.items() if where.startswith(f"{root}/")}
        kept = {path: info for path, info in paths.items() if path and not _hidden(path)}
        odd = next((path for path in kept if "" in path.split("/")), None)
        if odd is not None:
            raise SourceError(f"{self.named} holds {odd!r}, which is no path of a file", "rename it")
        if self.protocol in WEB:
            kept = {path: self._info(self._at(path)) for path in kept}
        return {path: facts_of(info) for path, info in kept.items()}

    def _below(self, root: str, where: str) -> str:
        path = where[len(root) + 1 :]
        if path.endswith("/"):
            return ""
        return ("" if "?" in path else unquote(path)) if self.protocol in WEB else path

    def _at(self, path: str) -> str:
        """What the file system calls a file. A URL that is itself a file's ends in its name."""
        url = self.url.rstrip("/")
        escaped = quote(path) if self.protocol in WEB else path
        whole = url if url.endswith(f"/{escaped}") and self._is_file else f"{url}/{escaped}"
        return str(self._files._strip_protocol(whole))

    @cached_property
    def _is_file(self) -> bool:
        name = PurePosixPath(self.url.rstrip("/")).name
        if self.protocol in WEB:
            return bool(PurePosixPath(name).suffix)
        return bool(self._info(self._files._strip_protocol(self.url.rstrip("/")))["type"] == "file")

    def _info(self, where: str) -> dict[str, Any]:
        return dict(self._files.info(where))

    def _read(self, where: str, start: int) -> Iterator[bytes]:
        with self._files.open(where, "rb", block_size=BLOCK, cache_type="none") as file:
            if start and file.seekable():
                file.seek(start)
            elif start:
                left = start
                while left and (block := file.read(min(left, BLOCK))):
                    left -= len(block)
            while block := file.read(BLOCK):
                yield bytes(block)

    def _again(self, error: Exception, tries: int, path: str = "") -> None:
        """Wait where another try is worth it; else raise what people are told."""
        if isinstance(error, SourceError | ParamsError):
            raise error
        if tries >= len(WAITS) or not _may_pass(error):
            raise self._told(error, path) from error
        time.sleep(WAITS[tries])

    def _told(self, error: Exception, path: str) -> SourceError:
        names = _names(error)
        where = f"{self.said}/{path}" if path and not self.said.endswith(f"/{path}") else self.said
        text = cleaned(str(error)) or type(error).__name__
        if isinstance(error, FileNotFoundError):
            return SourceError(f"{self.named} is not there: {where} ({text})", "correct its path in params.yaml")
        if isinstance(error, PermissionError) or getattr(error, "status", 0) in (401, 403):
            return SourceError(
                f"{self.named}: {where} is refused: {text}", f"give the right to it: {self._credentials}"
            )
        if "NoCredentialsError" in names or "DefaultCredentialsError" in names:
            return SourceError(
                f"{self.named}: no credentials for {where}", f"set {self._credentials}; a public one: storage.anon"
            )
        if "FileExpired" in names:
            return SourceError(f"{self.named} changes while it is read: {where}", "wait for its writer")
        if _may_pass(error):
            return SourceError(
                f"{self.named}: {where} cannot be reached: {text}", "try again: what was finished is kept"
            )
        return SourceError(f"{self.named}: {where} cannot be read: {type(error).__name__}: {text}", "mend it there")

    @property
    def _credentials(self) -> str:
        return CREDENTIALS.get(ALIASES.get(self.protocol, self.protocol), "its library looks for them")


def _hidden(path: str) -> bool:
    return any(name.startswith(".") or name == "__pycache__" for name in path.split("/"))


def _flat(options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in options.items():
        yield name, value
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", held) for inner, held in _flat(value))


def _may_be_secret(name: str, value: Any) -> bool:
    return "@" in str(value) or bool(_SECRET.search(name) and value != "anon")


def _names(error: Exception) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _may_pass(error: Exception) -> bool:
    if isinstance(error, FileNotFoundError | PermissionError) or "FileExpired" in _names(error):
        return False
    status = getattr(error, "status", 0)
    return bool(_names(error) & PASSING) or status == 429 or status >= 500 or getattr(error, "errno", 0) in BUSY
