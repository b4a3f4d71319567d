"""Tokens of timestamp authorities (RFC 3161): what was stamped, when, and with which certificate.

A token is CMS signed data (RFC 5652) around a TSTInfo. Whether its certificate is trusted is not asked here.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

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


_SIGNED_DATA = oid("1.2.840.113549.1.7.2")
_TST_INFO = oid("1.2.840.113549.1.9.16.1.4")
_CONTENT_TYPE, _MESSAGE_DIGEST = oid("1.2.840.113549.1.9.3"), oid("1.2.840.113549.1.9.4")
_SIGNING_CERT, _SIGNING_CERT_V2 = oid("1.2.840.113549.1.9.16.2.12"), oid("1.2.840.113549.1.9.16.2.47")
_PSS = oid("1.2.840.113549.1.1.10")
_DIGESTS: dict[bytes, hashes.HashAlgorithm] = {
    oid("2.16.840.1.101.3.4.2.1"): hashes.SHA256(),
    oid("2.16.840.1.101.3.4.2.2"): hashes.SHA384(),
    oid("2.16.840.1.101.3.4.2.3"): hashes.SHA512(),
}
# Algorithms that name their digest: RSA and ECDSA with SHA-256, SHA-384 and SHA-512.
_SIGNATURES: dict[bytes, hashes.HashAlgorithm] = {
    oid("1.2.840.113549.1.1.11"): hashes.SHA256(),
    oid("1.2.840.113549.1.1.12"): hashes.SHA384(),
    oid("1.2.840.113549.1.1.13"): hashes.SHA512(),
    oid("1.2.840.10045.4.3.2"): hashes.SHA256(),
    oid("1.2.840.10045.4.3.3"): hashes.SHA384(),
    oid("1.2.840.10045.4.3.4"): hashes.SHA512(),
}
_TAG_0, _TAG_0_PRIMITIVE = 0xA0, 0x80
_GRANTED = (0, 1)


class Broken(ValueError):
    """What is stated does not hold."""


class Unsupported(ValueError):
    """It is of a kind that is not checked here; that it is false was not found."""


class Stamp(NamedTuple):
    """One stamp whose signature holds."""

    at: datetime
    certificate: x509.Certificate
    """That of the authority."""
    others: list[x509.Certificate]
    """Certificates beside it, in any order."""


def read_stamp(token: bytes, message: bytes, certificates: list[x509.Certificate]) -> Stamp:
    """Return the stamp of a message; Broken if it is none of this message, or not signed by its certificate.

    `token` is a TimeStampResp, as servers answer it, or the token alone. Its certificate is among those that it
    brings or among `certificates`.
    """
    try:
        signed = _signed_data(read(token))
        content, info = _content(signed)
        moment = _judge_info(info, message)
        known = [*certificates, *_brought(signed)]
        signer = signed[-1].expect(SET).parts()
        if len(signer) != 1:
            raise Broken("a timestamp has one signer")
        certificate = _judge_signer(signer[0].expect(SEQUENCE).parts(), content, known)
    except (NotDer, IndexError, UnicodeDecodeError, OverflowError) as exc:
        raise Broken(f"the timestamp makes no sense ({exc})") from exc
    return Stamp(moment, certificate, [one for one in known if one != certificate])


def _signed_data(value: Value) -> list[Value]:
    parts = value.expect(SEQUENCE).parts()
    if parts[0].tag == SEQUENCE:
        if parts[0].parts()[0].integer() not in _GRANTED:
            raise Broken("the timestamp was not granted")
        parts = parts[1].expect(SEQUENCE).parts()
    if parts[0].expect(OID).content != _SIGNED_DATA:
        raise Broken("the timestamp is no signed data")
    return read(parts[1].expect(_TAG_0).content).expect(SEQUENCE).parts()


def _content(signed: list[Value]) -> tuple[bytes, list[Value]]:
    """Return the bytes that are stamped and signed, and their parts."""
    kind, wrapped = signed[2].expect(SEQUENCE).parts()[:2]
    if kind.expect(OID).content != _TST_INFO:
        raise Broken("what is signed is no timestamp")
    content = read(wrapped.expect(_TAG_0).content).expect(OCTETS).content
    return content, read(content).expect(SEQUENCE).parts()


def _judge_info(info: list[Value], message: bytes) -> datetime:
    algorithm, stated = info[2].expect(SEQUENCE).parts()
    digest = _digest(algorithm.expect(SEQUENCE).parts()[0])
    if hashlib.new(digest.name, message).digest() != stated.expect(OCTETS).content:
        raise Broken("the timestamp is one of another signature")
    text = info[4].expect(GENERALIZED_TIME).content.decode("ascii")
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    if not text.endswith("Z") or not (seconds + (fraction or "0")).isdigit():
        raise Broken("the time of the timestamp makes no sense")
    try:
        whole = datetime.strptime(seconds, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError as exc:
        raise Broken("the time of the timestamp makes no sense") from exc
    return whole + timedelta(seconds=float(f"0.{fraction or 0}"))


def _brought(signed: list[Value]) -> list[x509.Certificate]:
    found = []
    for one in signed[3:-1]:
        if one.tag == _TAG_0:
            found = [x509.load_der_x509_certificate(each.raw) for each in one.parts() if each.tag == SEQUENCE]
    return found


def _judge_signer(parts: list[Value], content: bytes, known: list[x509.Certificate]) -> x509.Certificate:
    """Return the certificate of the signer; Broken if the signature is not that of its key."""
    certificate = _find(parts[1], known)
    digest = _digest(parts[2].expect(SEQUENCE).parts()[0])
    attributes = parts[3].expect(_TAG_0)
    stated = _attributes(attributes)
    if stated.get(_CONTENT_TYPE) is None or stated[_CONTENT_TYPE].expect(OID).content != _TST_INFO:
        raise Broken("the signature of the timestamp is one of something else")
    wanted = hashlib.new(digest.name, content).digest()
    if stated.get(_MESSAGE_DIGEST) is None or stated[_MESSAGE_DIGEST].expect(OCTETS).content != wanted:
        raise Broken("the timestamp was changed after it was signed")
    _judge_named(stated, certificate)
    # RFC 5652, section 5.4: what is signed is the set with the tag of a set, not the tag that it is sent with.
    signed = bytes((SET,)) + attributes.raw[1:]
    _verify(certificate, parts[4].expect(SEQUENCE).parts()[0], digest, signed, parts[5].expect(OCTETS).content)
    return certificate


def _attributes(value: Value) -> dict[bytes, Value]:
    found: dict[bytes, Value] = {}
    for one in value.parts():
        kind, values = one.expect(SEQUENCE).parts()
        held = values.expect(SET).parts()
        if kind.expect(OID).content in found or len(held) != 1:
            raise Broken("an attribute of the timestamp stands there twice")
        found[kind.content] = held[0]
    return found


def _judge_named(stated: dict[bytes, Value], certificate: x509.Certificate) -> None:
    """Demand that the signed attributes name the certificate (RFC 5816): another with the same key is not meant."""
    attribute = stated.get(_SIGNING_CERT_V2) or stated.get(_SIGNING_CERT)
    if attribute is None:
        raise Broken("the timestamp does not name its certificate")
    parts = attribute.expect(SEQUENCE).parts()[0].expect(SEQUENCE).parts()[0].expect(SEQUENCE).parts()
    raw = certificate.public_bytes(serialization.Encoding.DER)
    if _SIGNING_CERT_V2 not in stated:
        wanted = hashlib.sha1(raw, usedforsecurity=False).digest()
    elif parts[0].tag == SEQUENCE:
        wanted = hashlib.new(_digest(parts.pop(0).parts()[0]).name, raw).digest()
    else:
        wanted = hashlib.sha256(raw).digest()
    if parts[0].expect(OCTETS).content != wanted:
        raise Broken("the timestamp names another certificate")


def _find(identifier: Value, known: list[x509.Certificate]) -> x509.Certificate:
    for one in known:
        if identifier.tag == SEQUENCE:
            issuer, serial = identifier.parts()
            if one.issuer.public_bytes() == issuer.raw and one.serial_number == serial.integer():
                return one
        elif identifier.tag == _TAG_0_PRIMITIVE:
            try:
                key = one.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
            except x509.ExtensionNotFound:
                continue
            if key == identifier.content:
                return one
    raise Broken("the certificate of the timestamp is not there")


def _verify(
    certificate: x509.Certificate, algorithm: Value, digest: hashes.HashAlgorithm, signed: bytes, signature: bytes
) -> None:
    kind = algorithm.expect(OID).content
    named = _SIGNATURES.get(kind, digest)
    key = certificate.public_key()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            pss = padding.PSS(mgf=padding.MGF1(named), salt_length=padding.PSS.AUTO)
            key.verify(signature, signed, pss if kind == _PSS else padding.PKCS1v15(), named)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, signed, ec.ECDSA(named))
        else:
            raise Unsupported("the timestamp is signed with a key of a kind that is not checked here")
    except InvalidSignature as exc:
        raise Broken("the timestamp is not signed by its certificate") from exc


def _digest(algorithm: Value) -> hashes.HashAlgorithm:
    found = _DIGESTS.get(algorithm.expect(OID).content)
    if found is None:
        raise Unsupported("the timestamp uses a digest that is not accepted here (SHA-256, SHA-384 and SHA-512 are)")
    return found
