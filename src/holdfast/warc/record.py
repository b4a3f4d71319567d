"""The head of one WARC record: written as WARC 1.1, and parsed from any writer.

Rejects an ambiguous head: a missing colon, no length, two lengths or an odd one, a line break inside a value.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from holdfast.errors import Invalid

# No honest head is larger; reject larger ones before they cost memory.
MAX_HEAD_BYTES = 64 * 1024
# Limit of an HTTP head in a record: twice the client's limit.
MAX_HTTP_HEAD_BYTES = 512 * 1024

# The media type of a record that replaces a damaged one in a repair.
LOST_TYPE = "application/x-holdfast-lost-record"


class RecordType(StrEnum):
    """The record types of WARC 1.1; a reader skips unknown ones."""

    WARCINFO = "warcinfo"
    RESPONSE = "response"
    RESOURCE = "resource"
    REQUEST = "request"
    METADATA = "metadata"
    REVISIT = "revisit"
    CONVERSION = "conversion"
    CONTINUATION = "continuation"


class Profile(StrEnum):
    """Why a revisit has no body: identical content, or a 304."""

    IDENTICAL_PAYLOAD = "identical-payload-digest"
    SERVER_NOT_MODIFIED = "server-not-modified"

    @property
    def uri(self) -> str:
        return f"http://netpreserve.org/warc/1.1/revisit/{self.value}"


class BadHead(Invalid):
    """The bytes are not the head of a WARC record."""

    code = "bad_record_head"


class RecordHead:
    __slots__ = ("_first", "fields", "version")

    def __init__(self, version: str, fields: tuple[tuple[str, str], ...]) -> None:
        self.version = version
        self.fields = fields
        """Names as written, in order. Bytes that are not UTF-8 stand in values as surrogates, so that none is lost."""
        self._first = {name.lower(): value for name, value in reversed(fields)}

    def get(self, name: str) -> str | None:
        """Return the first value of a field, ignoring the case of its name; bytes that are not UTF-8 are replaced."""
        value = self._first.get(name.lower())
        if value is None:
            return None
        return value.strip() if value.isascii() else _REPLACED.sub("\ufffd", value.strip())

    def every(self, name: str) -> tuple[str, ...]:
        """Return all values of a field, each without one leading space."""
        wanted = name.lower()
        if wanted not in self._first:
            return ()
        return tuple(value for field, value in self.fields if field.lower() == wanted)

    @property
    def type(self) -> str:
        """The record's type, lower-case; empty if it has none."""
        return (self.get("WARC-Type") or "").lower()

    @property
    def record_id(self) -> str:
        """The record's id, as a bare UUID if possible; empty if it has none."""
        return bare_id(self.get("WARC-Record-ID") or "")

    @property
    def url(self) -> str:
        """The target without the angle brackets of old writers; empty if it has none."""
        return self.address("WARC-Target-URI")

    def address(self, name: str) -> str:
        """Return the address in a field, empty if it has none. Bytes that are not UTF-8 are percent-encoded."""
        written = self._first.get(name.lower(), "").strip()
        # Remove brackets only in pairs: a URL may end in one.
        bare = written[1:-1] if written[:1] == "<" and written[-1:] == ">" else written
        # Encode like a browser: with U+FFFD, two URLs that differ in such a byte would be merged.
        return percent_encoded(bare)

    @property
    def is_url_encoded_anew(self) -> bool:
        """Whether the target has bytes that are not UTF-8, so that `url` differs from it."""
        value = self._first.get("warc-target-uri", "")
        return not value.isascii() and _REPLACED.search(value) is not None

    @property
    def content_length(self) -> int:
        """The length of the block; raises BadHead if it is missing, duplicated, or contains anything but digits."""
        values = self.every("Content-Length")
        # Two lengths let two readers see different records in one file; neither is chosen.
        if len(values) != 1:
            raise BadHead("no Content-Length" if not values else f"{len(values)} fields named Content-Length")
        if not _DIGITS.fullmatch(values[0]):
            raise BadHead(f"Content-Length is {percent_encoded(values[0][:40])!r}")
        return int(values[0])

    @property
    def date(self) -> datetime:
        """When the capture began; raises BadHead if the field is missing or not a date."""
        return parse_date(self.get("WARC-Date") or "")


_DIGITS = re.compile(r"[0-9]{1,18}")
_VERSION = re.compile(rb"WARC/\d{1,2}\.\d{1,3}", re.IGNORECASE)
# Invalid UTF-8 bytes, as `surrogateescape` represents them.
_REPLACED = re.compile("[\udc80-\udcff]")
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d))?)?)?")


def format_head(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return a WARC 1.1 head with its closing empty line; raise Invalid if a value would start another line."""
    lines = [f"{name}: {value}" for name, value in fields]
    text = "\r\n".join(("WARC/1.1", *lines, "", ""))
    # Servers choose URLs and media types: with a line break they could inject WARC fields.
    if text.count("\n") != len(lines) + 2 or text.count("\r") != len(lines) + 2 or "\0" in text:
        raise Invalid("a line break or NUL inside a WARC field: escape the address before it is archived")
    return text.encode()


def parse_head(raw: bytes) -> RecordHead:
    """Parse a head, with or without closing empty line; raise BadHead."""
    first, _, rest = raw.partition(b"\n")
    version = first.rstrip(b"\r ")
    if not _VERSION.fullmatch(version):
        raise BadHead(f"a record begins with {version[:40]!r} instead of WARC/1.1")
    fields: list[tuple[str, str]] = []
    folded: list[str] = []
    for line in rest.decode("utf-8", "surrogateescape").split("\n"):
        line = line.rstrip("\r")
        if line and line[0] in " \t" and fields:
            folded.append(line.strip())
            continue
        if folded:
            fields[-1] = _unfolded(fields[-1], folded)
            folded = []
        if not line:
            break
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadHead(f"a header line reads {percent_encoded(line[:60])!r}")
        fields.append((name, value.removeprefix(" ")))
    if folded:
        fields[-1] = _unfolded(fields[-1], folded)
    return RecordHead(version.decode().upper(), tuple(fields))


def percent_encoded(text: str) -> str:
    """Percent-encode the bytes of a text that are not UTF-8 (surrogates from decoding it)."""
    return text if text.isascii() else _REPLACED.sub(lambda odd: f"%{ord(odd[0]) - 0xDC00:02X}", text)


def _unfolded(field: tuple[str, str], folded: list[str]) -> tuple[str, str]:
    # Join once: a head may have tens of thousands of folded lines, and repeated concatenation takes quadratic time.
    name, value = field
    return name, " ".join((value, *folded)).strip()


def bare_id(record_id: str) -> str:
    """Return a WARC-Record-ID without brackets and `urn:uuid:`."""
    return record_id.strip().strip("<>").removeprefix("urn:uuid:")


def urn(bare: str) -> str:
    """Format a bare UUID for WARC-Record-ID, WARC-Concurrent-To and WARC-Refers-To."""
    return f"<urn:uuid:{bare}>"


@lru_cache(maxsize=16)  # both records of an exchange have the date of its request
def format_date(moment: datetime) -> str:
    """Format a WARC-Date: UTC, always six digits of a second."""
    # All six digits: a rebuild from the files must restore the row's exact time.
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def parse_date(text: str) -> datetime:
    """Parse a WARC-Date of any precision; raise BadHead if invalid. Nanoseconds are cut, not rounded."""
    match = _DATE.fullmatch(text.strip())
    if not match:
        raise BadHead(f"WARC-Date is {text[:40]!r}")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime(
            int(year),
            int(month or 1),
            int(day or 1),
            int(hour or 0),
            int(minute or 0),
            # A leap second, which datetime cannot represent.
            59 if second == "60" else int(second or 0),
            int((fraction or "").ljust(6, "0")[:6]),
            tzinfo=UTC,
        )
        if zone and zone != "Z":
            sign = -1 if zone[0] == "-" else 1
            moment -= sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    except (ValueError, OverflowError) as exc:
        raise BadHead(f"WARC-Date is {text[:40]!r}") from exc
    return moment


# How many records one file may hold: a snapshot's id is its file's id times this, plus the record's ordinal.
ORDINALS = 1 << 22

RecordIds = Callable[[], str]
"""Returns a new bare UUID at every call. Tests pass one that counts."""

_BATCH = 256


def snapshot_id(warc_file_id: int, ordinal: int) -> int:
    """Return the snapshot id of a record, the same after every rebuild from the files."""
    return warc_file_id * ORDINALS + ordinal


def _uuids() -> Iterator[str]:
    # Read random bytes for 256 ids at once: a system call for each would cost more than the rest (2 us against 0.5).
    while True:
        pool = os.urandom(16 * _BATCH).hex()
        for at in range(0, len(pool), 32):
            variant = "89ab"[int(pool[at + 16], 16) & 3]
            yield (
                f"{pool[at : at + 8]}-{pool[at + 8 : at + 12]}-4{pool[at + 13 : at + 16]}"
                f"-{variant}{pool[at + 17 : at + 20]}-{pool[at + 20 : at + 32]}"
            )


def random_ids() -> RecordIds:
    """Return a source of random UUIDs (version 4); after a fork, create a new one."""
    return _uuids().__next__


class Hasher(Protocol):
    """The interface of hashlib's objects."""

    def update(self, data: bytes, /) -> None:
        """Add more bytes."""
        ...

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""
        ...


_KNOWN = {"md5": "md5", "sha1": "sha1", "sha256": "sha256", "sha384": "sha384", "sha512": "sha512"}
_URL_SAFE = str.maketrans("-_", "+/")
_HEX = re.compile(r"[0-9a-fA-F]+")


def sha256_of(chunks: Iterable[bytes]) -> str:
    """Return the labelled SHA-256 of the concatenated bytes."""
    hasher = hashlib.sha256()
    for chunk in chunks:
        hasher.update(chunk)
    return "sha256:" + hasher.hexdigest()


def hasher_for(label: str) -> Hasher | None:
    """Return a new hasher for a labelled digest; None if its algorithm is unknown."""
    name = _KNOWN.get(label.partition(":")[0].strip().lower().replace("-", ""))
    return hashlib.new(name, usedforsecurity=False) if name else None


def agrees(label: str, hasher: Hasher) -> bool:
    """Compare a labelled digest with a hasher's; accepts hex, base32 and base64, which are all in use."""
    value = label.partition(":")[2].strip()
    seen = hasher.digest()
    # The standard shows base32 for SHA-1; newer writers use hex, and some base64, under the same label.
    if len(value) == 2 * len(seen) and _HEX.fullmatch(value):
        return bytes.fromhex(value) == seen
    return seen in (_decoded(base64.b32decode, value.upper()), _decoded(base64.b64decode, value.translate(_URL_SAFE)))


def _decoded(decode: Callable[[str], bytes], value: str) -> bytes | None:
    try:
        return decode(value)
    except (binascii.Error, ValueError):
        return None
