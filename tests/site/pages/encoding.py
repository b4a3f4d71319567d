"""Compressed bodies: good ones to compare with, bombs, layers, and labels that lie."""

from __future__ import annotations

import asyncio
import functools
import gzip
import struct
import zlib

import brotli
import zstandard

from tests.site.book import Group, html
from tests.site.wire import Exchange

encoding = Group("encoding", "compressed bodies, bombs and labels that lie (`mb`: size of a bomb when inflated)")

_PAGE = html("squeezed", "<p>compressible text</p>" * 50).encode()
_MIB = 1024 * 1024


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def _zeros(mib: int) -> bytes:
    """Return deflated zeros: one block, fully flushed, repeats, so that even a gibibyte is made at once."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(_MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * mib + packer.flush()


@functools.cache
def bomb(kind: str, mib: int) -> bytes:
    """Return a small valid body that inflates to so many mebibytes of zeros."""
    if kind == "gzip":
        check = functools.reduce(lambda crc, _: zlib.crc32(bytes(_MIB), crc), range(mib), 0)
        size = mib * _MIB & 0xFFFFFFFF
        return b"\x1f\x8b\x08\0\0\0\0\0\x02\xff" + _zeros(mib) + struct.pack("<II", check, size)
    if kind == "deflate":
        check = functools.reduce(lambda sum_, _: zlib.adler32(bytes(_MIB), sum_), range(mib), 1)
        return b"\x78\xda" + _zeros(mib) + struct.pack(">I", check)
    if kind == "zstd":
        return zstandard.compress(bytes(mib * _MIB))
    packer = brotli.Compressor(quality=5)
    return b"".join(packer.process(bytes(_MIB)) for _ in range(mib)) + bytes(packer.finish())


def _add_bomb(name: str, kind: str) -> None:
    @encoding.page(f"{name}-bomb", f"a {name} body that inflates to 128 MiB", sample="mb=1")
    async def handler(exchange: Exchange) -> None:
        body = await asyncio.to_thread(bomb, kind, int(exchange.number("mb", 128)))
        await exchange.reply(body, headers=[("Content-Encoding", name)])


for _label, _kind in (("gzip", "gzip"), ("deflate", "deflate"), ("br", "br"), ("zstd", "zstd")):
    _add_bomb(_label, _kind)


@encoding.page("gzip-gzip-bomb", "gzip inside gzip: a few hundred bytes, 64 MiB", sample="mb=1")
async def gzip_gzip_bomb(exchange: Exchange) -> None:
    inner = await asyncio.to_thread(bomb, "gzip", int(exchange.number("mb", 64)))
    await exchange.reply(gzip.compress(inner, mtime=0), headers=[("Content-Encoding", "gzip, gzip")])


def _gzip(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


_PACKED = _gzip(_PAGE)

for _name, _story, _label, _body in (
    ("gzip", "as it should be", "gzip", _PACKED),
    ("x-gzip", "as it should be, under the old name", "x-gzip", _PACKED),
    ("deflate", "as it should be (zlib)", "deflate", zlib.compress(_PAGE)),
    ("deflate-raw", "deflate without the zlib wrapper, which many servers send", "deflate", _raw_deflate(_PAGE)),
    ("br", "as it should be", "br", bytes(brotli.compress(_PAGE))),
    ("zstd", "as it should be", "zstd", zstandard.compress(_PAGE)),
    ("gzip-members", "gzip in two members", "gzip", _gzip(_PAGE[:100]) + _gzip(_PAGE[100:])),
    ("gzip-twice", "two layers, both named", "gzip, gzip", _gzip(_PACKED)),
    ("gzip-thrice", "three layers, all named", "gzip, gzip, gzip", _gzip(_gzip(_PACKED))),
    ("br-gzip", "gzip outside, brotli inside", "br, gzip", _gzip(bytes(brotli.compress(_PAGE)))),
    ("gzip-twice-unnamed", "two layers, one named", "gzip", _gzip(_PACKED)),
    ("twenty", "twenty encodings named, one used", ", ".join(["gzip"] * 20), _PACKED),
    ("gzip-lie", "named gzip, but plain", "gzip", _PAGE),
    ("br-lie", "named br, but gzip", "br", _PACKED),
    ("zstd-lie", "named zstd, but noise", "zstd", bytes(range(256)) * 4),
    ("gzip-cut", "gzip cut in the middle", "gzip", _PACKED[: len(_PACKED) // 2]),
    ("gzip-junk", "gzip with junk behind it", "gzip", _PACKED + b"junk" * 100),
    ("gzip-flipped", "gzip with a wrong checksum", "gzip", _PACKED[:-8] + b"\0" * 8),
    ("gzip-empty", "named gzip, no body", "gzip", b""),
    ("unknown", "an encoding that does not exist", "sdch", _PAGE),
    ("identity", "named identity, plain", "identity", _PAGE),
):
    encoding.fixed(_name, _story, _body, headers=[("Content-Encoding", _label)])

encoding.fixed("unnamed", "gzip without a label", _PACKED)
