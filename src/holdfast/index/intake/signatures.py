"""The anonymous signature of a WACZ: ECDSA over its digest with the public key beside it, as browsers make it.

It proves that the package is as its maker left it, not who that was. A signature with a certificate is not checked.
"""

from __future__ import annotations

import binascii
import hashlib
from base64 import b64decode
from typing import Any, NamedTuple

Point = tuple[int, int] | None


class Curve(NamedTuple):
    """A curve of NIST in short Weierstrass form (FIPS 186-4, D.1.2), with a = -3."""

    prime: int
    b: int
    order: int
    base: tuple[int, int]
    oid: bytes

    @property
    def size(self) -> int:
        """Bytes of a coordinate."""
        return (self.prime.bit_length() + 7) // 8


_P256 = Curve(
    0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF,
    0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B,
    0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    (
        0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
        0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
    ),
    bytes.fromhex("2a8648ce3d030107"),
)
_P384 = Curve(
    0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFFFF0000000000000000FFFFFFFF,
    0xB3312FA7E23EE7E4988E056BE3F82D19181D9C6EFE8141120314088F5013875AC656398D8A2ED19D2A85C8EDD3EC2AEF,
    0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973,
    (
        0xAA87CA22BE8B05378EB1C71EF320AD746E1D3B628BA79B9859F741E082542A385502F25DBF55296C3A545E3872760AB7,
        0x3617DE4A96262C6F5D9E98BF9292DC29F8F41DBD289A147CE9DA3113B5F0B8C00A60B1CE1D7E819D7A431D7C90EA0E5F,
    ),
    bytes.fromhex("2b81040022"),
)
_MAX_CHARS = 4096


def check_signature(signed: dict[str, Any]) -> bool | None:
    """Return whether the signature over `hash` holds for `publicKey`; None if it is of a kind that is not checked."""
    fields = signed.get("hash"), signed.get("signature"), signed.get("publicKey")
    digest, signature, key = (one if isinstance(one, str) and len(one) <= _MAX_CHARS else None for one in fields)
    if digest is None or signature is None or key is None or signed.get("domainCert"):
        return None
    try:
        spki, raw = b64decode(key, validate=True), b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    for curve in (_P384, _P256):
        # SubjectPublicKeyInfo (RFC 5480): the curve by its OID, then the point, uncompressed, to the end.
        point = spki[-2 * curve.size - 1 :]
        if curve.oid in spki[: -len(point)] and point.startswith(b"\x04"):
            spot = int.from_bytes(point[1 : 1 + curve.size]), int.from_bytes(point[1 + curve.size :])
            return _holds(curve, spot, digest.encode(), raw)
    return None


def _holds(curve: Curve, key: tuple[int, int], message: bytes, signature: bytes) -> bool:
    """Verify r and s, each of a coordinate's length, over the SHA-256 of the message (FIPS 186-4, 6.4)."""
    if len(signature) != 2 * curve.size or not _is_on(curve, key):
        return False
    r, s = int.from_bytes(signature[: curve.size]), int.from_bytes(signature[curve.size :])
    if not (0 < r < curve.order and 0 < s < curve.order):
        return False
    hashed = int.from_bytes(hashlib.sha256(message).digest()) % curve.order
    inverse = pow(s, -1, curve.order)
    left = _times(curve, hashed * inverse % curve.order, curve.base)
    right = _times(curve, r * inverse % curve.order, key)
    total = _plus(curve, left, right)
    return total is not None and total[0] % curve.order == r


def _is_on(curve: Curve, point: tuple[int, int]) -> bool:
    x, y = point
    return max(x, y) < curve.prime and (y * y - (x * x * x - 3 * x + curve.b)) % curve.prime == 0


def _plus(curve: Curve, one: Point, other: Point) -> Point:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2), prime = one, other, curve.prime
    if x1 == x2 and (y1 + y2) % prime == 0:
        return None
    rise, run = (3 * x1 * x1 - 3, 2 * y1) if one == other else (y2 - y1, x2 - x1)
    slope = rise * pow(run, -1, prime)
    x3 = (slope * slope - x1 - x2) % prime
    return x3, (slope * (x1 - x3) - y1) % prime


def _times(curve: Curve, factor: int, point: Point) -> Point:
    total: Point = None
    while factor:
        if factor & 1:
            total = _plus(curve, total, point)
        point = _plus(curve, point, point)
        factor >>= 1
    return total
