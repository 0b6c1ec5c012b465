"""Downloads from a real server on this machine that misbehaves as servers and networks do."""

from __future__ import annotations

import email.utils
import errno
import itertools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from unittest import mock

import pytest
from hosts import Answer, Host, serving

from cwbc.data import download as network
from cwbc.data.download import discard, download
from cwbc.system.errors import InputError

BLOCK = 1 << 16  # in place of the 1 MiB in use, so that a file of some blocks is small
BODY = os.urandom(3 * BLOCK) + b"the end"


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(BODY) as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set.part"


@pytest.fixture(autouse=True)
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Which file (by inode) was made safe on disk at which size; noted and not done, for it takes long."""
    noted: list[tuple[int, int]] = []

    def note(file: int) -> None:
        noted.append((os.fstat(file).st_ino, os.fstat(file).st_size))

    monkeypatch.setattr(os, "fsync", note)
    return noted


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cwbc.data.download._BLOCK", BLOCK)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are noted and not slept."""
    noted: list[float] = []
    monkeypatch.setattr(time, "sleep", noted.append)
    return noted


def fetch(
    url: str, path: Path, *, attempts: int = 5, pause: float = 0.01, timeout: float = 5.0, **given: Any
) -> None:
    """Download with limits of our own."""
    with mock.patch.multiple(network, _ATTEMPTS=attempts, _PAUSE=pause, _TIMEOUT=timeout):
        download(url, path, **given)


def get(host: Host, path: Path, **settings: Any) -> None:
    fetch(host.url, path, **settings)


def refused(*parts: str) -> Any:
    return pytest.raises(InputError, match=".*".join(map(re.escape, parts)))


def half(host: Host, path: Path, **answer: Any) -> None:
    """Leave the first half of the file, as a call does that gives up."""
    host.answers = [Answer(cut=2 * BLOCK, **answer), Answer(503)]
    with refused("503"):
        get(host, path, attempts=1)
    host.answers = [Answer(**answer)]
    host.requests.clear()
    assert path.read_bytes() == BODY[: 2 * BLOCK]


def test_a_whole_file(host: Host, path: Path) -> None:
    shown: list[tuple[int, int | None]] = []
    get(host, path, progress=lambda done, total: shown.append((done, total)))
    assert path.read_bytes() == BODY
    assert shown[0] == (0, len(BODY))
    assert shown[-1] == (len(BODY), len(BODY))
    assert shown == sorted(shown)
    assert max(after - before for (before, _), (after, _) in itertools.pairwise(shown)) <= BLOCK
    assert host.requests[0]["Accept-Encoding"] == "identity"


def test_the_file_is_safe_on_disk_before_the_end(
    host: Host, path: Path, synced: list[tuple[int, int]]
) -> None:
    get(host, path)
    whole = path.stat().st_ino, len(BODY)
    assert synced[-1] == whole
    synced.clear()
    get(host, path)  # the process before may have been killed before it was
    assert synced == [whole]


def test_a_whole_file_is_not_asked_for_again(host: Host, path: Path) -> None:
    get(host, path)
    shown: list[tuple[int, int | None]] = []
    get(host, path, progress=lambda done, total: shown.append((done, total)))
    assert shown == [(len(BODY), len(BODY))]
    assert len(host.requests) == 1


def test_discard_removes_the_file_and_the_note(host: Host, path: Path) -> None:
    get(host, path)
    assert sorted(os.listdir(path.parent)) == ["set.part", "set.part.json"]
    discard(path)
    discard(path)
    assert os.listdir(path.parent) == []


def test_a_drop_is_gone_on_from_and_no_byte_comes_twice(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=BLOCK + 5), Answer(cut=BLOCK), Answer()]
    get(host, path, attempts=1)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, f"bytes={BLOCK + 5}-", f"bytes={2 * BLOCK + 5}-"]
    assert [request.get("If-Range") for request in host.requests] == [None, '"one"', '"one"']
    assert host.sent == len(BODY)


def test_a_reset_is_gone_on_from(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=2 * BLOCK, reset=True), Answer()]
    get(host, path)
    assert path.read_bytes() == BODY


def test_a_drop_before_the_answer_is_tried_again(host: Host, path: Path, waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/set.hdf5"
    with refused(
        url, "Connection refused; nothing arrived", "try again later", "--url URL", "CWBC_D4RL_MIRROR"
    ):
        fetch(url, path, attempts=3, pause=1.0)
    assert waits == [1, 2]


def test_what_another_call_left_is_gone_on_with(host: Host, path: Path) -> None:
    half(host, path)
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [f"bytes={2 * BLOCK}-"]


def test_always_dropping_gives_up_and_keeps_what_came(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=2 * BLOCK), Answer(cut=10)]
    with refused(
        f"{host.url}: the connection ended after 131,102 of 196,615 bytes; ",
        "131,102 of 196,615 bytes arrived: the same command resumes the download",
    ):
        get(host, path, attempts=3)
    assert host.ranges == [None, *(f"bytes={2 * BLOCK + 10 * i}-" for i in range(3))]
    assert path.read_bytes() == BODY[: 2 * BLOCK + 30]


def test_a_truncated_file_is_not_taken_for_a_whole_one(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=100, ranges=False)]
    with refused("the connection ended after 100 of 196,615 bytes"):
        get(host, path, attempts=4)
    assert len(host.requests) == 4


def test_starting_anew_is_no_progress(host: Host, path: Path) -> None:
    # More and less by turns, always from the start: each second attempt gains on the one before it.
    host.answers = [Answer(cut=cut * BLOCK, ranges=False) for cut in (2, 1) * 20]
    with refused("the connection ended after"):
        get(host, path, attempts=3)
    assert len(host.requests) == 4


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_what_is_not_there_fails_at_once(host: Host, path: Path, status: int) -> None:
    host.answers = [Answer(status)]
    with refused(
        f"{host.url} answered {status} ", "; give another address with --url URL", "CWBC_D4RL_MIRROR"
    ):
        get(host, path)
    assert len(host.requests) == 1
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again(host: Host, path: Path, waits: list[float], status: int) -> None:
    host.answers = [Answer(status), Answer(status), Answer(status), Answer()]
    get(host, path, pause=1.0)
    assert path.read_bytes() == BODY
    assert waits == [1, 2, 4]


def test_an_always_busy_server(host: Host, path: Path, waits: list[float]) -> None:
    host.answers = [Answer(503)]
    with refused("the server answered 503 Service Unavailable; nothing arrived that can be resumed"):
        get(host, path, pause=10.0)
    assert len(host.requests) == 5
    assert waits == [10, 20, 40, 60]


@pytest.mark.parametrize(
    ("wanted", "waited"),
    [("7", 7), ("3600", 60), ("Mon, 05 Jul 2021 10:00:00 GMT", 0.01), ("soon", 0.01), ("-1", 0.01)],
)
def test_retry_after_is_kept_to_within_a_minute(
    host: Host, path: Path, waits: list[float], wanted: str, waited: float
) -> None:
    host.answers = [Answer(429, (("Retry-After", wanted),)), Answer()]
    get(host, path)
    assert path.read_bytes() == BODY
    assert waits == [waited]


def test_retry_after_may_be_a_date(host: Host, path: Path, waits: list[float]) -> None:
    date = email.utils.formatdate(time.time() + 50, usegmt=True)
    host.answers = [Answer(503, (("Retry-After", date),)), Answer()]
    get(host, path)
    assert 0.01 < waits[0] <= 50


@pytest.mark.parametrize(
    "answer",
    [
        {"ranges": False},
        {"etag": '"two"', "modified": "Tue, 06 Jul 2021 10:00:00 GMT"},
        {"etag": '"two"', "checks": False},
        {"content_range": f"bytes 7-{len(BODY) - 1}/{len(BODY)}"},
        {"content_range": f"bytes {2 * BLOCK}-{len(BODY)}/{len(BODY) + 1}"},
        {"content_range": "rows 1-2/3"},
    ],
    ids=["no ranges", "changed", "changed, If-Range ignored", "another start", "another total", "unreadable"],
)
def test_what_does_not_fit_begins_anew(host: Host, path: Path, answer: dict[str, Any]) -> None:
    half(host, path)
    host.body = BODY[::-1]
    host.answers = [Answer(**answer)]
    get(host, path)
    assert path.read_bytes() == host.body
    assert host.ranges[0] == f"bytes={2 * BLOCK}-"


def test_a_file_that_changes_between_attempts(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=BLOCK), Answer(etag='"two"', modified=None, cut=BLOCK), Answer(etag='"two"')]
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, f"bytes={BLOCK}-", f"bytes={BLOCK}-"]
    assert host.requests[-1]["If-Range"] == '"two"'


@pytest.mark.parametrize("etag", [None, 'W/"one"'])
def test_without_a_strong_etag_the_date_decides(host: Host, path: Path, etag: str | None) -> None:
    half(host, path, etag=etag)
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.requests[0]["If-Range"] == "Mon, 05 Jul 2021 10:00:00 GMT"


def test_without_a_validator_no_part_is_trusted(host: Host, path: Path) -> None:
    host.answers = [
        Answer(etag=None, modified=None, cut=2 * BLOCK),
        Answer(503),
        Answer(etag=None, modified=None),
    ]
    with refused("503 Service Unavailable; nothing arrived that can be resumed"):
        get(host, path, attempts=1)
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, None, None]


@pytest.mark.parametrize(
    "note",
    [None, "", "{", "[]", "{}", "\x00", '{"url": 1, "etag": 2, "modified": 3, "total": "4"}'],
)
def test_without_a_sound_note_it_begins_anew(host: Host, path: Path, note: str | None) -> None:
    half(host, path)
    beside = path.with_name("set.part.json")
    beside.unlink() if note is None else beside.write_text(note)
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None]


def test_a_note_of_another_address_or_too_short_is_not_gone_on_with(host: Host, path: Path) -> None:
    half(host, path)
    beside = path.with_name("set.part.json")
    note = json.loads(beside.read_text())
    for change in ({"url": f"{host.url}2"}, {"total": BLOCK}):
        path.write_bytes(BODY[: 2 * BLOCK])
        beside.write_text(json.dumps(note | change))
        get(host, path)
        assert path.read_bytes() == BODY
    assert host.ranges == [None, None]


def test_nothing_after_the_end_means_whole(host: Host, path: Path) -> None:
    get(host, path)
    host.answers = [Answer(length=False)]
    discard(path)
    get(host, path)
    assert json.loads(path.with_name("set.part.json").read_text())["total"] is None
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, None, f"bytes={len(BODY)}-"]
    assert host.sent == 2 * len(BODY)


def test_a_part_longer_than_the_file_begins_anew(host: Host, path: Path) -> None:
    host.answers = [Answer(length=False)]
    get(host, path)
    host.body = BODY[:BLOCK]
    get(host, path)
    assert path.read_bytes() == BODY[:BLOCK]
    assert host.ranges == [None, f"bytes={len(BODY)}-", None]


@pytest.mark.parametrize("answer", [{"length": False}, {"chunked": True}])
def test_a_length_that_is_not_told(host: Host, path: Path, answer: dict[str, Any]) -> None:
    shown: list[int | None] = []
    host.answers = [Answer(**answer)]
    get(host, path, progress=lambda done, total: shown.append(total))
    assert path.read_bytes() == BODY
    assert set(shown) == {None}


def test_a_drop_among_chunks_is_gone_on_from_and_then_the_length_is_known(host: Host, path: Path) -> None:
    shown: list[tuple[int, int | None]] = []
    host.answers = [Answer(chunked=True, cut=2 * BLOCK), Answer(cut=5), Answer(503), Answer()]
    with refused("503", "131,077 bytes arrived"):
        get(host, path, attempts=2)
    get(host, path, progress=lambda done, total: shown.append((done, total)))
    assert path.read_bytes() == BODY
    assert shown[0] == (2 * BLOCK + 5, len(BODY))
    assert host.sent == len(BODY)


def test_a_stall_ends_the_attempt(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=BLOCK, stalls=True), Answer()]
    get(host, path, timeout=2.0)  # long enough for a busy machine to answer within it
    assert path.read_bytes() == BODY
    assert host.ranges[:2] == [None, f"bytes={BLOCK}-"]


def test_always_stalling_gives_up(host: Host, path: Path) -> None:
    host.answers = [Answer(cut=0, stalls=True)]
    with refused("nothing came for 0.1 s; nothing arrived that can be resumed"):
        get(host, path, timeout=0.1, attempts=2)


def test_a_server_that_never_answers(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with refused("nothing came for 0.1 s"):
            fetch(url, path, timeout=0.1, attempts=2)


@pytest.mark.parametrize("length", [True, False])
def test_a_byte_now_and_then_is_no_download(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch, length: bool
) -> None:
    seconds = itertools.count(step=0.4)
    monkeypatch.setattr("cwbc.data.download._clock", lambda: next(seconds))
    host.answers = [Answer(dribbles=True, length=length)]
    with refused("bytes came in 5 s; "):
        get(host, path, attempts=2)
    assert len(host.requests) == 2


@pytest.mark.parametrize("answer", [{}, {"length": False}, {"chunked": True}])
def test_a_file_beyond_what_it_may_have(host: Host, path: Path, answer: dict[str, Any]) -> None:
    host.answers = [Answer(**answer)]
    with refused(f"{host.url} has more than the {BLOCK:,} bytes that are expected; give another address"):
        get(host, path, most=BLOCK)
    assert os.listdir(path.parent) == []
    assert host.sent <= len(BODY)
    get(host, path, most=len(BODY))
    assert path.read_bytes() == BODY


@pytest.mark.parametrize("place", ["ftp://127.0.0.1/x", "FTP://127.0.0.1/x"])
def test_redirects_lead_to_web_servers_alone(host: Host, path: Path, place: str) -> None:
    host.answers = [Answer(302, (("Location", place),))]
    with refused(f"{host.url} redirects to", "127.0.0.1/x', which is no web address; give another address"):
        get(host, path)
    assert len(host.requests) == 1


def test_a_link_in_the_way_is_not_written_through(host: Host, path: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    path.symlink_to(tmp_path / "victim")
    get(host, path)
    assert (tmp_path / "victim").read_text() == "precious"
    assert path.read_bytes() == BODY


def test_redirects_are_followed_also_by_ranges(host: Host, path: Path) -> None:
    moved = Answer(302, (("Location", "/elsewhere"),))
    host.answers = [moved, Answer(cut=BLOCK), moved, Answer()]
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, None, f"bytes={BLOCK}-", f"bytes={BLOCK}-"]


def test_a_circle_of_redirects_fails(host: Host, path: Path) -> None:
    host.answers = [Answer(302, (("Location", "/set.hdf5"),))]
    with refused(f"{host.url} answered 302 ", "infinite loop", "; give another address with --url URL"):
        get(host, path)


def test_compressed_answers_are_refused(host: Host, path: Path) -> None:
    host.answers = [Answer(headers=(("Content-Encoding", "gzip"),))]
    with refused(f"{host.url} comes compressed (gzip), though requested uncompressed; give another"):
        get(host, path)


@pytest.mark.parametrize("url", ["ftp://host/file", "/data/file", "file", "", "http://", "http://[::1/x"])
def test_addresses_of_other_kinds(path: Path, url: str) -> None:
    with refused(f"cannot download from {url!r}: an address starts with http:// or https://", "file:///"):
        download(url, path)


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/x", "http://a..b/x"])
def test_addresses_that_cannot_be(path: Path, url: str) -> None:
    with refused(f"cannot download from {url!r}: "):
        download(url, path)


def test_spaces_and_letters_of_any_language(host: Host, path: Path) -> None:
    download(f"{host.url}/größe 1", path)
    assert path.read_bytes() == BODY


def test_a_file_on_this_machine(tmp_path: Path, path: Path) -> None:
    source = tmp_path / "größe 1.hdf5"
    source.write_bytes(BODY)
    path.write_bytes(b"old")
    download(f"file://{source}", path)
    assert path.read_bytes() == BODY
    with refused("file:///", "missing", "cannot be read:", "No such file", "; give another address"):
        download(f"file://{tmp_path}/missing", path)


def test_a_disk_that_takes_no_more_is_told_as_such(host: Host, path: Path) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * BLOCK, limit[1]))
    try:
        with pytest.raises(OSError, match="File too large") as shown:
            get(host, path)
        assert shown.value.filename == str(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert len(host.requests) == 1
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, f"bytes={2 * BLOCK}-"]


def test_a_disk_that_is_found_full_at_the_end(
    host: Host, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        if os.fstat(file).st_size > BLOCK:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as shown:
        get(host, path)
    assert shown.value.filename == str(path)
    assert len(host.requests) == 1


def test_an_interrupt_keeps_what_came(host: Host, path: Path) -> None:
    def interrupt(done: int, total: int | None) -> None:
        if done > BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(host, path, progress=interrupt)
    have = path.stat().st_size
    assert have > BLOCK
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, f"bytes={have}-"]


CHILD = """
import sys
from pathlib import Path
from cwbc.data.download import download
download(sys.argv[1], Path(sys.argv[2]), lambda done, total: print(done, flush=True))
"""


def test_a_kill_is_gone_on_from(host: Host, path: Path) -> None:
    def until(output: IO[str], bytes_done: int) -> None:
        while int(output.readline()) < bytes_done:
            pass

    host.answers = [Answer(cut=2 * BLOCK, stalls=True), Answer()]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, host.url, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout
    with child, child.stdout as output:
        until(output, 2 * BLOCK)
        child.send_signal(signal.SIGKILL)
        assert child.wait(10) == -signal.SIGKILL
    get(host, path)
    assert path.read_bytes() == BODY
    assert host.ranges == [None, f"bytes={2 * BLOCK}-"]
    assert host.sent == len(BODY)
