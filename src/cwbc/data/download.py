"""Resumable downloads that survive dropped connections, stalls, busy servers and kills."""

from __future__ import annotations

import contextlib
import dataclasses
import email.utils
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from cwbc.data.formats.protection import check_regular
from cwbc.system.errors import InputError
from cwbc.system.files import open_to_append, write_atomically
from cwbc.system.typed_json import decode

if TYPE_CHECKING:
    from cwbc.system.progress import Progress

_BLOCK = 1 << 20  # bytes: the most in memory at once, and the least that counts as progress
_LONGEST_WAIT = 60.0  # seconds between two attempts, even where a server requests more
_SLOWEST = 1 << 10  # bytes per second, averaged over the timeout; any slower, and a file takes days
_MOST = 4 << 30  # bytes of a file of unknown size
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})  # answers after which another attempt may succeed
_clock = time.monotonic
_ELSEWHERE = "give another address with --url URL, or a mirror of the host in CWBC_D4RL_MIRROR"


def download(
    url: str,
    path: Path,
    progress: Progress | None = None,
    *,
    attempts: int = 5,
    pause: float = 1.0,
    timeout: float = 30.0,
    most: int = _MOST,
) -> None:
    """Complete the file at `path` to what `url` serves, resuming an interrupted transfer.

    A note beside it (`path` + ".json") identifies the resource; it stays, even after success, until
    `discard(path)`, so that a kill before the caller has used the file costs no second transfer.

    Args:
        attempts: how many in a row may fail without progress.
        pause: seconds before the second of them; it doubles with each, up to a minute.
        timeout: seconds without a byte, or with hardly any, after which an attempt has failed.
        most: bytes beyond which it cannot be the expected file.
    """
    url = _address(url)
    transfer = _Transfer(url, path, progress, timeout, most)
    furthest = failures = 0
    while True:
        try:
            return transfer.attempt()
        except _TooLargeError:
            discard(path)
            raise
        except _InterruptedError as error:
            failures += 1
            # Only a block beyond every earlier attempt is progress: a server that starts over each time, or
            # sends a few bytes per connection, would otherwise occupy us forever.
            arrived = path.stat().st_size if path.exists() else 0
            if arrived >= furthest + _BLOCK:
                furthest, failures = arrived, 0
            if failures >= attempts:
                raise InputError(f"{url}: {error}; {transfer.remainder()}") from error
            wait = max(pause * 2 ** max(failures - 1, 0), error.wait)
            time.sleep(min(wait, _LONGEST_WAIT))


def discard(path: Path) -> None:
    """Remove a partial or unwanted download and its note, or the note alone once the file was moved."""
    path.unlink(missing_ok=True)
    _note(path).unlink(missing_ok=True)


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _TooLargeError(InputError):
    """More bytes than the expected file can have."""


class _InterruptedError(Exception):
    """A failed attempt after which another one may succeed."""

    def __init__(self, reason: object, wait: float = 0.0) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.wait = wait  # seconds that the server requested


@dataclasses.dataclass(frozen=True)
class _Resource:
    """What the bytes on disk are a part of."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None  # bytes, where the server declares them

    @property
    def validator(self) -> str | None:
        """What a range request names, so that parts of two different files are never combined."""
        # A weak ETag promises the same meaning, not the same bytes: HTTP forbids it here.
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    def resumed(self, have: int, headers: Message) -> _Resource | None:
        """The resource, if an answer continues after `have` bytes (206) or says that these are all (416)."""
        pairs = ((self.etag, headers["ETag"]), (self.modified, headers["Last-Modified"]))
        content = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(?:(\d+)|\*)", headers["Content-Range"] or "")
        if not content or not all(None in pair or pair[0] == pair[1] for pair in pairs):
            return None
        start, total = (int(number) if number else None for number in content.groups())
        same = not self.total or not total or self.total == total
        fits = start == have if start is not None else total == have
        return dataclasses.replace(self, total=total or self.total) if same and fits else None


@dataclasses.dataclass(frozen=True)
class _Transfer:
    """One file that is downloaded in one or more attempts."""

    url: str
    path: Path
    progress: Progress | None
    timeout: float
    most: int

    def attempt(self) -> None:
        part, have = self._part()
        if part and have == part.total:
            self._receive(None, have, part)
            return
        headers = {"Accept-Encoding": "identity", "User-Agent": "cwbc"}
        if part and part.validator:
            headers |= {"Range": f"bytes={have}-", "If-Range": part.validator}
        with self._opened(urllib.request.Request(self.url, headers=headers)) as response:
            encoding = response.headers["Content-Encoding"] or "identity"
            if encoding != "identity":
                what = f"comes compressed ({encoding}), though requested uncompressed"
                raise InputError(f"{self.url} {what}; {_ELSEWHERE}")
            if response.status in (206, 416):
                part = part and part.resumed(have, response.headers)
            else:  # the whole: 200, and None for file://
                part, have = self._start(response.headers), 0
            if not part:
                discard(self.path)
                raise _InterruptedError("the server has another file now than the one downloaded in part")
            self._receive(response, have, part)

    def remainder(self) -> str:
        """What a later call can resume."""
        part, have = self._part()
        if not part:
            return f"nothing arrived that can be resumed: try again later, or {_ELSEWHERE}"
        whole = f" of {part.total:,}" if part.total else ""
        return f"{have:,}{whole} bytes arrived: the same command resumes the download"

    def _part(self) -> tuple[_Resource | None, int]:
        """What can be resumed, and how many bytes of it are on disk."""
        try:
            part: _Resource = decode(_Resource, json.loads(_note(self.path).read_bytes()), "the note")
            have = self.path.stat().st_size
        except (FileNotFoundError, ValueError, RecursionError):
            return None, 0
        begun = have > 0 and part.validator is not None and (part.total is None or have < part.total)
        return (part, have) if part.url == self.url and (begun or have == part.total) else (None, 0)

    def _opened(self, request: urllib.request.Request) -> Any:
        if request.type == "file":
            check_regular(Path(urllib.request.url2pathname(request.selector)))
        try:
            return urllib.request.build_opener(_Redirects).open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            if error.code == 416:
                return error
            with error:
                answer = " ".join(f"{error.code} {error.reason}".split())  # urllib adds lines of its own
            if error.code in _TEMPORARY:
                wait = _requested_wait(error.headers)
                raise _InterruptedError(f"the server answered {answer}", wait) from error
            raise InputError(f"{self.url} answered {answer}; {_ELSEWHERE}") from error
        except (http.client.InvalidURL, UnicodeError) as error:
            raise InputError(f"cannot download from {self.url!r}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if request.type == "file":
                raise InputError(f"{self.url} cannot be read: {reason}; {_ELSEWHERE}") from error
            raise self._interrupted(reason) from error

    def _start(self, headers: Message) -> _Resource:
        """Empty the file and note what its bytes will be."""
        length = headers["Content-Length"] or ""
        known = length.isdecimal() and not headers["Transfer-Encoding"]
        total = int(length) if known else None
        resource = _Resource(self.url, headers["ETag"], headers["Last-Modified"], total)
        # Emptied, and on disk, before the note: no crash leaves old bytes under the new file's name.
        self.path.unlink(missing_ok=True)  # not truncated, which would follow a link
        with _appending(self.path):
            pass
        write_atomically(_note(self.path), json.dumps(dataclasses.asdict(resource)))
        return resource

    def _receive(self, response: Any, done: int, part: _Resource) -> None:
        """Append what arrives to the file, and sync it to disk; `done` bytes are there already."""
        total, report = part.total, self.progress or (lambda done, total: None)
        with _appending(self.path) as file:
            report(done, total)
            since, before = _clock(), done
            while total is None or done < total:
                if max(done, total or 0) > self.most:
                    what = f"has more than the {self.most:,} bytes that are expected"
                    raise _TooLargeError(f"{part.url} {what}; {_ELSEWHERE}")
                if not (
                    block := self._read(response, _BLOCK if total is None else min(_BLOCK, total - done))
                ):
                    break
                file.write(block)
                file.flush()  # reported bytes survive a kill
                done += len(block)
                report(done, total)
                if (passed := _clock() - since) >= self.timeout:
                    if done - before < _SLOWEST * passed:
                        raise _InterruptedError(f"only {done - before:,} bytes came in {passed:.0f} s")
                    since, before = _clock(), done
        if done != self.path.stat().st_size:
            raise InputError(f"{self.path} was written by another process at the same time; try again")
        if total is not None and done < total:
            raise _InterruptedError(f"the connection ended after {done:,} of {total:,} bytes")

    def _read(self, response: Any, size: int) -> bytes:
        try:
            # Not read(): it waits for all of the size, and a slow line would show nothing for minutes.
            return response.read1(size)
        except (OSError, http.client.HTTPException) as error:
            raise self._interrupted(error) from error

    def _interrupted(self, reason: object) -> _InterruptedError:
        if isinstance(reason, TimeoutError):
            return _InterruptedError(f"nothing came for {self.timeout:g} s")
        early = isinstance(reason, http.client.IncompleteRead)
        return _InterruptedError("the connection ended too early" if early else reason)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects to other web servers only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ("http", "https"):
            what = f"redirects to {newurl!r}, which is no web address"
            raise InputError(f"{req.full_url} {what}; {_ELSEWHERE}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "file" or (parts.scheme in ("http", "https") and parts.hostname)
    except ValueError:  # such as brackets without an end
        usable = False
    if not usable:
        raise InputError(
            f"cannot download from {url!r}: an address starts with http:// or https://, "
            "or with file:/// for a file on this machine"
        )
    return quote(url, safe="!#$%&'()*+,/:;=?@[]~")


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _requested_wait(headers: Message) -> float:
    """The seconds of Retry-After, given as a number or as a date."""
    wait = headers["Retry-After"] or "0"
    if wait.isdecimal():
        return float(wait)
    try:
        return email.utils.parsedate_to_datetime(wait).timestamp() - time.time()
    except ValueError:
        return 0.0


@contextlib.contextmanager
def _appending(path: Path) -> Iterator[IO[bytes]]:
    """A file to append to, synced to disk at the end; errors of the disk name the file."""
    try:
        with open_to_append(path) as file:
            try:
                yield file
            finally:
                os.fsync(file.fileno())
    except OSError as error:
        if error.filename is None and error.errno:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise
