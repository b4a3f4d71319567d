"""Memory shared by sibling processes: a slot for each, where it leaves a few bytes for the others.

The content of a dead process stays: its successor with the same number continues from it.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from typing import Final

# The number of the half with the latest content; then the length and checksum of each half's content.
_HEAD: Final = struct.Struct("<B")
_CONTENT: Final = struct.Struct("<II")
_HALF: Final = 256 * 1024
"""Bytes that one process may leave; pages that are never written cost no memory."""
_PLACE: Final = mmap.PAGESIZE + 2 * _HALF
_TRIES: Final = 3


class SharedPlaces:
    """Slots of some processes; create it before forking."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._memory = mmap.mmap(-1, count * _PLACE)

    def leave(self, number: int, content: bytes) -> bool:
        """Store the content in a process's own slot; return False, without a change, if it is too long."""
        if len(content) + _CONTENT.size > _HALF:
            return False
        place = number * _PLACE
        # Write to the unused half, then one byte: a kill in between leaves the old content.
        half = 1 - _HEAD.unpack_from(self._memory, place)[0]
        start = place + mmap.PAGESIZE + half * _HALF
        self._memory[start + _CONTENT.size : start + _CONTENT.size + len(content)] = content
        _CONTENT.pack_into(self._memory, start, len(content), zlib.crc32(content))
        _HEAD.pack_into(self._memory, place, half)
        return True

    def left(self, number: int) -> bytes:
        place = number * _PLACE
        for _ in range(_TRIES):
            half = _HEAD.unpack_from(self._memory, place)[0]
            start = place + mmap.PAGESIZE + half * _HALF
            length, wanted = _CONTENT.unpack_from(self._memory, start)
            content = self._memory[start + _CONTENT.size : start + _CONTENT.size + min(length, _HALF)]
            # The writer may have written twice since the half was chosen: the checksum then differs.
            if zlib.crc32(content) == wanted:
                return content
        return b""


class ServedProcess:
    def __init__(self, number: int, places: SharedPlaces) -> None:
        self.number, self._places = number, places

    def leave(self, content: bytes) -> bool:
        return self._places.leave(self.number, content)

    def left(self) -> bytes:
        """Return what this process's predecessor with the same number stored."""
        return self._places.left(self.number)

    def others(self) -> Iterator[bytes]:
        for number in range(self._places.count):
            if number != self.number:
                yield self._places.left(number)
