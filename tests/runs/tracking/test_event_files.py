"""The bytes of event files: published checksums, and a record put together by hand."""

from __future__ import annotations

import pytest

from cwbc.runs.tracking.event_files import crc32c, event


@pytest.mark.parametrize(
    ("data", "checksum"),
    [  # RFC 3720, B.4, and the usual check value
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (b"", 0),
    ],
)
def test_checksums(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


def test_an_event_by_hand() -> None:
    record = event(1.0, 300, {"a": 0.5})
    content = bytes.fromhex(
        "09 000000000000f03f"  # wall_time, a double
        "10 ac02"  # step, 300 = 2 * 128 + 44
        "2a 0a"  # summary of ten bytes
        "0a 08"  # a value of eight bytes
        "0a 01 61"  # tag
        "15 0000003f"  # simple_value, a float
    )
    assert record[:8] == bytes([24, 0, 0, 0, 0, 0, 0, 0])
    assert record[12:-4] == content
    assert len(content) == 24
