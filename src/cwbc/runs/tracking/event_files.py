"""TensorBoard's event files without TensorBoard: records with checksums around a few protobuf fields."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def first_event(wall_time: float) -> bytes:
    """The record that every file begins with: an Event with file_version = 3."""
    return _record(_head(wall_time, 0) + _field(3, b"brain.Event:2"))


def event(wall_time: float, step: int, values: Mapping[str, float]) -> bytes:
    """The record of an Event: wall_time = 1, step = 2, summary = 5; a value has tag = 1, simple_value = 2."""
    summary = b"".join(
        _field(1, _field(1, tag.encode()) + struct.pack("<Bf", 2 << 3 | 5, value))
        for tag, value in values.items()
    )
    return _record(_head(wall_time, step) + _field(5, summary))


def _head(wall_time: float, step: int) -> bytes:
    # A negative step is written as its two's complement in 64 bits.
    return struct.pack("<BdB", 1 << 3 | 1, wall_time, 2 << 3) + _varint(step % 2**64)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def _record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + _masked_sum(length) + content + _masked_sum(content)


def _masked_sum(data: bytes) -> bytes:
    checksum = crc32c(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) % 2**32)


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, reflected
    return byte


_REMAINDERS = [_remainder(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """The checksum that Python's own libraries lack."""
    checksum = 2**32 - 1
    for byte in data:
        checksum = checksum >> 8 ^ _REMAINDERS[(checksum ^ byte) & 0xFF]
    return checksum ^ (2**32 - 1)
