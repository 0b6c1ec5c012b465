"""Resumable downloads that survive dropped connections, stalls, busy servers and kills."""

from __future__ import annotations

import contextlib
import dataclasses
import email.utils
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

_ATTEMPTS = 5  # that may fail in a row without progress
_PAUSE = 1.0  # seconds before the second of them; it doubles with each
_TIMEOUT = 30.0  # seconds without a byte, or with hardly any, after which an attempt has failed
_BLOCK = 1 << 20  # bytes: the most in memory at once, and the least that counts as progress
_LONGEST_WAIT = 60.0  # seconds between two attempts, even where a server requests more
_SLOWEST = 1 << 10  # bytes per second, averaged over the timeout; any slower, and a file takes days
MOST = 4 << 30  # bytes of a file of unknown size
_TEMPORARY = frozenset({408, 429, 500, 502, 503, 504})  # answers after which another attempt may succeed
_clock = time.monotonic
_ELSEWHERE = "give another address with --url URL, or a mirror of the host in CWBC_D4RL_MIRROR"


def download(url: str, path: Path, progress: Progress | None = None, most: int = MOST) -> None:
    """Complete the file at `path` to what `url` serves, resuming an interrupted transfer.

    A note beside it (`path` + ".json") identifies the resource; it stays, even after success, until
    `discard(path)`, so that a kill before the caller has used the file costs no second transfer.

    Args:
        most: bytes beyond which it cannot be the expected file.
    """
    url = _address(url)
    furthest = failures = 0
    while True:
        try:
            return _attempt(url, path, progress or (lambda done, total: None), most)
        except _InterruptedError as error:
            failures += 1
            # Only a block beyond every earlier attempt is progress: a server that starts over each time, or
            # sends a few bytes per connection, would otherwise occupy us forever.
            arrived = path.stat().st_size if path.exists() else 0
            if arrived >= furthest + _BLOCK:
                furthest, failures = arrived, 0
            if failures >= _ATTEMPTS:
                part, have = _part(url, path)
                whole = f" of {part.total:,}" if part and part.total else ""
                rest = f"{have:,}{whole} bytes arrived: the same command resumes the download"
                nothing = f"nothing arrived that can be resumed: try again later, or {_ELSEWHERE}"
                raise InputError(f"{url}: {error}; {rest if part else nothing}") from error
            time.sleep(min(max(_PAUSE * 2 ** max(failures - 1, 0), error.wait), _LONGEST_WAIT))


def discard(path: Path) -> None:
    """Remove a partial or unwanted download and its note, or the note alone once the file was moved."""
    path.unlink(missing_ok=True)
    _note(path).unlink(missing_ok=True)


class _InterruptedError(Exception):
    """A failed attempt after which another one may succeed."""

    def __init__(self, reason: object, wait: float = 0.0) -> None:
        if isinstance(reason, TimeoutError):
            reason = f"nothing came for {_TIMEOUT:g} s"
        elif isinstance(reason, http.client.IncompleteRead):
            reason = "the connection ended too early"
        super().__init__(str(reason) or type(reason).__name__)
        self.wait = wait  # seconds that the server requested


@dataclasses.dataclass(frozen=True)
class _Resource:
    """What the bytes on disk are a part of."""

    url: str
    validator: str | None  # of a range request, so that parts of two different files are never combined
    total: int | None  # bytes, where the server declares them

    def resumed(self, have: int, headers: Message) -> _Resource | None:
        """The resource, if an answer continues after `have` bytes (206) or says that these are all (416)."""
        content = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(?:(\d+)|\*)", headers["Content-Range"] or "")
        if not content or _validator(headers) not in (None, self.validator):
            return None
        start, total = (int(number) if number else None for number in content.groups())
        same = not self.total or not total or self.total == total
        fits = start == have if start is not None else total == have
        return dataclasses.replace(self, total=total or self.total) if same and fits else None


def _validator(headers: Message) -> str | None:
    # A weak ETag promises the same meaning, not the same bytes: HTTP forbids it here.
    strong = headers["ETag"] and not headers["ETag"].startswith("W/")
    return headers["ETag"] if strong else headers["Last-Modified"]


def _part(url: str, path: Path) -> tuple[_Resource | None, int]:
    """What can be resumed, and how many bytes of it are on disk."""
    try:
        part: _Resource = decode(_Resource, json.loads(_note(path).read_bytes()), "the note")
        have = path.stat().st_size
    except (FileNotFoundError, ValueError, RecursionError):
        return None, 0
    begun = have > 0 and part.validator is not None and (part.total is None or have < part.total)
    return (part, have) if part.url == url and (begun or have == part.total) else (None, 0)


def _attempt(url: str, path: Path, report: Progress, most: int) -> None:
    """Receive the rest of a file, or all of it."""
    part, have = _part(url, path)
    if part and have == part.total:
        _receive(None, path, have, part, report, most)  # synced: a kill may have come before it was
        return
    headers = {"Accept-Encoding": "identity", "User-Agent": "cwbc"}
    if part and part.validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": part.validator}
    with _opened(urllib.request.Request(url, headers=headers)) as response:
        encoding = response.headers["Content-Encoding"] or "identity"
        if encoding != "identity":
            raise _refused(url, f"comes compressed ({encoding}), though requested uncompressed")
        if response.status in (206, 416):
            part = part and part.resumed(have, response.headers)
        else:  # the whole: 200, and None for file://
            part, have = _start(url, path, response.headers), 0
        if not part:
            discard(path)
            raise _InterruptedError("the server has another file now than the one downloaded in part")
        _receive(response, path, have, part, report, most)


def _opened(request: urllib.request.Request) -> Any:
    url, local = request.full_url, request.type == "file"
    if local:
        check_regular(Path(urllib.request.url2pathname(request.selector)))
    try:
        return urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        with error:
            answer = " ".join(f"{error.code} {error.reason}".split())  # urllib adds lines of its own
        if error.code not in _TEMPORARY:
            raise _refused(url, f"answered {answer}") from error
        asked = error.headers["Retry-After"] or ""
        wait = float(asked) if asked.isdecimal() else 0.0
        with contextlib.suppress(ValueError):  # it is no date
            wait = email.utils.parsedate_to_datetime(asked).timestamp() - time.time()
        raise _InterruptedError(f"the server answered {answer}", wait) from error
    except (http.client.InvalidURL, UnicodeError) as error:
        raise InputError(f"cannot download from {url!r}: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if local:
            raise _refused(url, f"cannot be read: {reason}") from error
        raise _InterruptedError(reason) from error


def _refused(url: str, what: str) -> InputError:
    return InputError(f"{url} {what}; {_ELSEWHERE}")


def _start(url: str, path: Path, headers: Message) -> _Resource:
    """Empty the file and note what its bytes will be."""
    length = headers["Content-Length"] or ""
    known = length.isdecimal() and not headers["Transfer-Encoding"]
    resource = _Resource(url, _validator(headers), int(length) if known else None)
    # Emptied, and on disk, before the note: no crash leaves old bytes under the new file's name.
    path.unlink(missing_ok=True)  # not truncated, which would follow a link
    with _appending(path):
        pass
    write_atomically(_note(path), json.dumps(dataclasses.asdict(resource)))
    return resource


def _receive(response: Any, path: Path, done: int, part: _Resource, report: Progress, most: int) -> None:
    """Append what arrives to the file, and sync it to disk; `done` bytes are there already."""
    total = part.total
    with _appending(path) as file:
        report(done, total)
        since, before = _clock(), done
        while total is None or done < total:
            if max(done, total or 0) > most:
                discard(path)
                raise _refused(part.url, f"has more than the {most:,} bytes that are expected")
            try:
                # Not read(): it waits for all of the size, and a slow line would show nothing for minutes.
                block = response.read1(_BLOCK if total is None else min(_BLOCK, total - done))
            except (OSError, http.client.HTTPException) as error:
                raise _InterruptedError(error) from error
            if not block:
                break
            file.write(block)
            file.flush()  # reported bytes survive a kill
            done += len(block)
            report(done, total)
            if (passed := _clock() - since) >= _TIMEOUT:
                if done - before < _SLOWEST * passed:
                    raise _InterruptedError(f"only {done - before:,} bytes came in {passed:.0f} s")
                since, before = _clock(), done
    if done != path.stat().st_size:
        raise InputError(f"{path} was written by another process at the same time; try again")
    if total is not None and done < total:
        raise _InterruptedError(f"the connection ended after {done:,} of {total:,} bytes")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirects to other web servers only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise _refused(req.full_url, f"redirects to {newurl!r}, which is no web address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _address(url: str) -> str:
    with contextlib.suppress(ValueError):  # such as brackets without an end
        parts = urlsplit(url)
        if parts.scheme == "file" or (parts.scheme in ("http", "https") and parts.hostname):
            return quote(url, safe="!#$%&'()*+,/:;=?@[]~")
    starts = "http:// or https://, or with file:/// for a file on this machine"
    raise InputError(f"cannot download from {url!r}: an address starts with {starts}")


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


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
