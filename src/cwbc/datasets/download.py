"""Files from the network, whatever it does: drops, stalls, busy servers, kills in the middle."""

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
from typing import IO, Any
from urllib.parse import quote, urlsplit

from cwbc.datasets.decoding import check_regular
from cwbc.datasets.source import Progress
from cwbc.errors import InputError
from cwbc.files import open_to_append, write_atomically

_BLOCK = 1 << 20  # bytes: the most held in memory, and the least that counts as progress
_LONGEST_WAIT = 60.0  # seconds between two attempts, also where a server asks for more
_SLOWEST = 1 << 10  # bytes per second, on average over the timeout; any slower, and a file takes days
_MOST = 4 << 30  # bytes of a file, where it is not known how many it has
_PASSING = frozenset({408, 429, 500, 502, 503, 504})  # answers that another attempt may not get
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
    """Bring the file at `path` to the whole of what `url` serves, going on where a transfer broke off.

    A note beside it (`path` + ".json") says what the bytes belong to; it stays, also after success, until
    `discard(path)`, so that a kill before the caller is done with the file costs no second transfer.

    Args:
        attempts: how many in a row may fail without progress.
        pause: seconds before the second of them; it doubles with each, up to a minute.
        timeout: seconds without a byte, or with hardly any, after which an attempt has failed.
        most: bytes beyond which it cannot be the file that is wanted.
    """
    url = _address(url)
    furthest = failures = 0
    while True:
        try:
            return _attempt(url, path, progress, timeout, most)
        except _TooMuch:
            discard(path)
            raise
        except _Interrupted as error:
            failures += 1
            # Only what goes beyond every earlier attempt is progress, and only by a block: a server that
            # starts anew each time, or gives a few bytes per connection, would else keep us here forever.
            arrived = path.stat().st_size if path.exists() else 0
            if arrived >= furthest + _BLOCK:
                furthest, failures = arrived, 0
            if failures >= attempts:
                raise InputError(f"{url}: {error}; {_what_is_kept(url, path)}") from error
            wait = max(pause * 2 ** max(failures - 1, 0), error.wait)
            time.sleep(min(wait, _LONGEST_WAIT))


def discard(path: Path) -> None:
    """Remove a partial or unwanted download and the note beside it, or the note alone once the file moved."""
    path.unlink(missing_ok=True)
    _note(path).unlink(missing_ok=True)


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _TooMuch(InputError):
    """More bytes than the file that is wanted can have."""


class _Interrupted(Exception):
    """An attempt that failed, where another one may succeed."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait  # seconds that the server asked for


@dataclasses.dataclass(frozen=True)
class _Resource:
    """What the bytes on disk are a part of."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None  # bytes, where the server tells

    @property
    def validator(self) -> str | None:
        """What a range request names, so that parts of two different files never meet."""
        # A weak ETag promises the same meaning, not the same bytes: HTTP forbids it here.
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    def agrees_with(self, headers: Message) -> bool:
        """Whether an answer speaks of this resource, as far as it tells."""
        pairs = ((self.etag, headers["ETag"]), (self.modified, headers["Last-Modified"]))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)


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


def _attempt(url: str, path: Path, progress: Progress | None, timeout: float, most: int) -> None:
    part, have = _part(url, path)
    if part and have == part.total:
        _receive(None, path, have, part, progress, timeout, most)
        return
    headers = {"Accept-Encoding": "identity", "User-Agent": "cwbc"}
    if part and part.validator:
        headers |= {"Range": f"bytes={have}-", "If-Range": part.validator}
    with _open(urllib.request.Request(url, headers=headers), timeout) as response:
        encoding = response.headers["Content-Encoding"] or "identity"
        if encoding != "identity":
            raise InputError(f"{url} comes compressed ({encoding}), though asked for as it is; {_ELSEWHERE}")
        if response.status in (206, 416):
            part = _continued(part, have, response.headers)
        else:  # the whole: 200, and None for file://
            part, have = _begin(url, path, response.headers), 0
        if not part:
            discard(path)
            raise _Interrupted("the server has another file now than the one whose first part was kept")
        _receive(response, path, have, part, progress, timeout, most)


def _part(url: str, path: Path) -> tuple[_Resource | None, int]:
    """What can be gone on with, and how many bytes of it are here."""
    try:
        part = _Resource(**json.loads(_note(path).read_bytes()))
        have = path.stat().st_size
    except (FileNotFoundError, ValueError, TypeError):
        return None, 0
    texts = (part.url, part.etag, part.modified)
    if not all(isinstance(text, str | None) for text in texts) or not isinstance(part.total, int | None):
        return None, 0
    begun = have > 0 and part.validator is not None and (part.total is None or have < part.total)
    return (part, have) if part.url == url and (begun or have == part.total) else (None, 0)


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _what_is_kept(url: str, path: Path) -> str:
    part, have = _part(url, path)
    if not part:
        return f"nothing arrived that can be gone on with: try again later, or {_ELSEWHERE}"
    whole = f" of {part.total:,}" if part.total else ""
    return f"{have:,}{whole} bytes arrived and are kept: the same command goes on with them"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Servers may send us on to other web servers, and nowhere else."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise InputError(
                f"{req.full_url} sends us on to {newurl!r}, which is no web address; {_ELSEWHERE}"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(request: urllib.request.Request, timeout: float) -> Any:
    url = request.full_url
    if request.type == "file":
        check_regular(Path(urllib.request.url2pathname(request.selector)))
    try:
        return urllib.request.build_opener(_Redirects).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        with error:
            answer = " ".join(f"{error.code} {error.reason}".split())  # urllib adds lines of its own
        if error.code in _PASSING:
            raise _Interrupted(f"the server answered {answer}", _asked_wait(error.headers)) from error
        raise InputError(f"{url} answered {answer}; {_ELSEWHERE}") from error
    except (http.client.InvalidURL, UnicodeError) as error:
        raise InputError(f"cannot download from {url!r}: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if request.type == "file":
            raise InputError(f"{url} cannot be read: {reason}; {_ELSEWHERE}") from error
        raise _Interrupted(_told(reason, timeout)) from error


def _asked_wait(headers: Message) -> float:
    """Seconds that Retry-After asks for, given as a number or as a date."""
    asked = headers["Retry-After"] or "0"
    if asked.isdecimal():
        return float(asked)
    try:
        return email.utils.parsedate_to_datetime(asked).timestamp() - time.time()
    except ValueError:
        return 0.0


def _told(reason: object, timeout: float) -> str:
    if isinstance(reason, TimeoutError):
        return f"nothing came for {timeout:g} s"
    if isinstance(reason, http.client.IncompleteRead):
        return "the connection ended too early"
    return str(reason) or type(reason).__name__


def _begin(url: str, path: Path, headers: Message) -> _Resource:
    """Empty the file and note what its bytes will belong to."""
    length = headers["Content-Length"] or ""
    known = length.isdecimal() and not headers["Transfer-Encoding"]
    resource = _Resource(url, headers["ETag"], headers["Last-Modified"], int(length) if known else None)
    # Emptied, and on disk, before the note: no crash leaves old bytes under the new file's name.
    path.unlink(missing_ok=True)  # rather than emptied: a link there would lead elsewhere
    with _writing(path):
        pass
    write_atomically(_note(path), json.dumps(dataclasses.asdict(resource)))
    return resource


def _continued(part: _Resource | None, have: int, headers: Message) -> _Resource | None:
    """The part, if an answer to a range request goes on where it ends (206) or says that it is all (416)."""
    told = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(?:(\d+)|\*)", headers["Content-Range"] or "")
    if not part or not told or not part.agrees_with(headers):
        return None
    start, total = (int(number) if number else None for number in told.groups())
    if part.total and total and part.total != total:
        return None
    fits = start == have if start is not None else total == have
    return dataclasses.replace(part, total=total or part.total) if fits else None


def _receive(
    response: Any,
    path: Path,
    done: int,
    part: _Resource,
    progress: Progress | None,
    timeout: float,
    most: int,
) -> None:
    """Add to the file what comes, tell it, and leave it safe on disk; `done` bytes are there already."""
    total = part.total
    with _writing(path) as file:
        if progress:
            progress(done, total)
        since, before = _clock(), done
        while total is None or done < total:
            if max(done, total or 0) > most:
                raise _TooMuch(f"{part.url} has more than the {most:,} bytes that are expected; {_ELSEWHERE}")
            block = _read(response, _BLOCK if total is None else min(_BLOCK, total - done), timeout)
            if not block:
                break
            file.write(block)
            file.flush()  # what is told survives a kill
            done += len(block)
            if progress:
                progress(done, total)
            if (passed := _clock() - since) >= timeout:
                if done - before < _SLOWEST * passed:
                    raise _Interrupted(f"only {done - before:,} bytes came in {passed:.0f} s")
                since, before = _clock(), done
    if done != path.stat().st_size:
        raise InputError(f"{path} was written by another process at the same time; try again")
    if total is not None and done < total:
        raise _Interrupted(f"the connection ended after {done:,} of {total:,} bytes")


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[IO[bytes]]:
    """A file to add to, safe on disk at the end; what is wrong with the disk is told with its name."""
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


def _read(response: Any, size: int, timeout: float) -> bytes:
    try:
        # Not read(): it waits for all of the size, and a slow line would show nothing for minutes.
        return response.read1(size)
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(_told(error, timeout)) from error
