"""Values in DER, as far as a timestamp has them: short tags, definite lengths. Anything else is refused."""

from __future__ import annotations

from typing import NamedTuple

SEQUENCE, SET, INTEGER, OCTETS, OID, GENERALIZED_TIME = 0x30, 0x31, 0x02, 0x04, 0x06, 0x18
_LONG_TAG, _MAX_LENGTH_BYTES = 0x1F, 4


class NotDer(ValueError):
    """These bytes are no DER, or not the value that stands here by its definition."""


class Value(NamedTuple):
    """One value: its tag, its content, and both with the length between them as they were read."""

    tag: int
    content: bytes
    raw: bytes

    def expect(self, tag: int) -> Value:
        """Return this value; NotDer if its tag is another."""
        if self.tag != tag:
            raise NotDer(f"tag {self.tag:#x} stands where {tag:#x} should")
        return self

    def parts(self) -> list[Value]:
        """Return the values inside, in their order."""
        found, at = [], 0
        while at < len(self.content):
            one = _value(self.content, at)
            found.append(one)
            at += len(one.raw)
        return found

    def integer(self) -> int:
        """Return the number that this is."""
        return int.from_bytes(self.expect(INTEGER).content, signed=True)


def read(data: bytes) -> Value:
    """Return the one value that these bytes are."""
    found = _value(data, 0)
    if len(found.raw) != len(data):
        raise NotDer("bytes follow the value")
    return found


def oid(dotted: str) -> bytes:
    """Return the content of an object identifier."""
    first, second, *rest = (int(one) for one in dotted.split("."))
    out = bytearray([first * 40 + second])
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(number & 0x7F | 0x80)
        out += bytes(reversed(digits))
    return bytes(out)


def _value(data: bytes, at: int) -> Value:
    if len(data) - at < 2 or data[at] & _LONG_TAG == _LONG_TAG:
        raise NotDer("no value that is understood")
    start, size = at + 2, data[at + 1]
    if size >= 0x80:
        count = size & 0x7F
        if not 0 < count <= _MAX_LENGTH_BYTES:
            raise NotDer("a length without end, or one that is too long")
        size = int.from_bytes(data[start : start + count])
        start += count
    if start + size > len(data):
        raise NotDer("a value is cut off")
    return Value(data[at], data[start : start + size], data[at : start + size])
