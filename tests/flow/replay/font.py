"""A font of one glyph, made here: a box for the letter A. Small enough to read, whole enough for a browser."""

from __future__ import annotations

import struct


def make_font() -> bytes:
    """Return a TrueType font named Box."""
    # One contour of four points on the curve: (100,0) (100,700) (600,700) (600,0).
    outline = struct.pack(">hhhhh", 1, 100, 0, 600, 700) + struct.pack(">HH", 3, 0) + bytes([1, 1, 1, 1])
    outline += struct.pack(">hhhh", 100, 0, 500, 0) + struct.pack(">hhhh", 0, 700, 0, -700)
    outline += b"\0" * (-len(outline) % 4)
    glyphs = outline * 2
    cmap_body = struct.pack(
        ">HHHHHHH", 4, 32, 0, 4, 4, 1, 0
    ) + struct.pack(">HH", 65, 0xFFFF) + struct.pack(">H", 0) + struct.pack(">HH", 65, 0xFFFF)  # fmt: skip
    cmap_body += struct.pack(">hh", 1 - 65, 1) + struct.pack(">HH", 0, 0)
    tables = {
        b"OS/2": _os2(),
        b"cmap": struct.pack(">HHHHI", 0, 1, 3, 1, 12) + cmap_body,
        b"glyf": glyphs,
        b"head": struct.pack(">IIIIHHqqhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, 1000, 0, 0, 100, 0, 600, 700,
                             0, 8, 2, 1, 0),
        b"hhea": struct.pack(">IhhhHhhhhh12xH", 0x10000, 800, -200, 0, 700, 100, 100, 600, 1, 0, 2),
        b"hmtx": struct.pack(">HhHh", 700, 100, 700, 100),
        b"loca": struct.pack(">III", 0, len(outline), 2 * len(outline)),
        b"maxp": struct.pack(">IHHHHHHHHHHHHHH", 0x10000, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": _name(),
        b"post": struct.pack(">IIhhIIIII", 0x30000, 0, -100, 50, 0, 0, 0, 0, 0),
    }  # fmt: skip
    return _file(tables)


def _os2() -> bytes:
    return struct.pack(
        ">HhHHHhhhhhhhhhhh10sIIII4sHHHhhhHHIIhhHHH", 4, 700, 400, 5, 0, 650, 600, 0, 75, 650, 600, 0, 350, 50, 300, 0,
        b"\0" * 10, 1, 0, 0, 0, b"BOX ", 64, 65, 65, 800, -200, 0, 800, 200, 1, 0, 500, 700, 0, 65, 1,
    )  # fmt: skip


def _name() -> bytes:
    texts = [(1, "Box"), (2, "Regular"), (3, "Box"), (4, "Box"), (5, "Version 1"), (6, "Box")]
    data = b""
    records = b""
    for number, text in texts:
        packed = text.encode("utf-16-be")
        records += struct.pack(">HHHHHH", 3, 1, 0x409, number, len(packed), len(data))
        data += packed
    return struct.pack(">HHH", 0, len(texts), 6 + len(records)) + records + data


def _file(tables: dict[bytes, bytes]) -> bytes:
    count = len(tables)
    head = struct.pack(">IHHHH", 0x10000, count, 128, 3, count * 16 - 128)
    offset = len(head) + count * 16
    entries = b""
    body = b""
    for tag, data in sorted(tables.items()):
        entries += struct.pack(">4sIII", tag, _checksum(data), offset + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    whole = head + entries + body
    at = whole.index(tables[b"head"])
    adjustment = (0xB1B0AFBA - _checksum(whole)) & 0xFFFFFFFF
    return whole[: at + 8] + struct.pack(">I", adjustment) + whole[at + 12 :]


def _checksum(data: bytes) -> int:
    padded = data + b"\0" * (-len(data) % 4)
    words: tuple[int, ...] = struct.unpack(f">{len(padded) // 4}I", padded)
    return sum(words) & 0xFFFFFFFF
