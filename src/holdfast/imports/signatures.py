"""Verification of WACZ signatures (WACZ Signing and Verification 0.1.0).

Checks the key, the certificate and its chain, the timestamp (RFC 3161) and its chain, against the system's
roots. Nothing is fetched, and revocation is not checked. Imported only when a package is signed.
"""

from __future__ import annotations

import binascii
import hashlib
import importlib
import importlib.util
import re
import warnings
from base64 import b64decode
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy, PolicyBuilder, Store, VerificationError

from holdfast.errors import Unavailable
from holdfast.fetch.guard import trust_store


class Worth(StrEnum):
    VALID = "valid"
    UNTRUSTED = "untrusted"
    """The signature is valid, but its chain ends at no root trusted here."""
    INVALID = "invalid"


class Signature(NamedTuple):
    worth: Worth
    kind: str
    """`anonymous` (a key of its own) or `domain` (a certificate of a host name)."""
    by: str
    """The host name, or the SHA-256 of the public key."""
    at: datetime | None = None
    """Time of signing, as a timestamp authority states it."""
    why: str = ""

    @property
    def is_broken(self) -> bool:
        return self.worth is Worth.INVALID

    def broken(self, why: str) -> Signature:
        return self._replace(worth=Worth.INVALID, why=why)

    def sentence(self) -> str:
        who = f"signed by {self.by}" if self.kind == "domain" else f"signed with the key {self.by}"
        when = f" on {self.at:%Y-%m-%d %H:%M:%S} UTC" if self.at is not None else ""
        if self.worth is Worth.INVALID:
            return f"{who}{when}: the signature does not hold: {self.why}"
        if self.worth is Worth.UNTRUSTED:
            return f"{who}{when}: the signature holds but is not trusted: {self.why}"
        trust = "its certificate and its time are trusted" if self.kind == "domain" else "it does not say who signed"
        return f"{who}{when}: the signature holds; {trust}"


SEQUENCE, SET, INTEGER, OCTETS, OID, GENERALIZED_TIME = 0x30, 0x31, 0x02, 0x04, 0x06, 0x18
_LONG_TAG, _MAX_LENGTH_BYTES = 0x1F, 4


class NotDer(ValueError):
    """These bytes are not DER, or not the value that the definition requires here."""


class DerValue(NamedTuple):
    """One value: its tag, its content, and its raw encoding with tag and length."""

    tag: int
    content: bytes
    raw: bytes

    def expect(self, tag: int) -> DerValue:
        """Return this value; raise NotDer if its tag differs."""
        if self.tag != tag:
            raise NotDer(f"tag {self.tag:#x} stands where {tag:#x} should")
        return self

    def parts(self) -> list[DerValue]:
        found, at = [], 0
        while at < len(self.content):
            one = _value(self.content, at)
            found.append(one)
            at += len(one.raw)
        return found

    def integer(self) -> int:
        return int.from_bytes(self.expect(INTEGER).content, signed=True)


def read_der(data: bytes) -> DerValue:
    found = _value(data, 0)
    if len(found.raw) != len(data):
        raise NotDer("bytes follow the value")
    return found


def oid(dotted: str) -> bytes:
    first, second, *rest = (int(one) for one in dotted.split("."))
    out = bytearray([first * 40 + second])
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(number & 0x7F | 0x80)
        out += bytes(reversed(digits))
    return bytes(out)


def _value(data: bytes, at: int) -> DerValue:
    # DER in timestamps needs no multi-byte tags; unknown forms are rejected, never guessed.
    if len(data) - at < 2 or data[at] & _LONG_TAG == _LONG_TAG:
        raise NotDer("no value that is understood")
    start, size = at + 2, data[at + 1]
    if size >= 0x80:
        count = size & 0x7F
        # Zero means an indefinite length, which DER forbids; four bytes are longer than any token here.
        if not 0 < count <= _MAX_LENGTH_BYTES:
            raise NotDer("a length without end, or one that is too long")
        size = int.from_bytes(data[start : start + count])
        start += count
    if start + size > len(data):
        raise NotDer("a value is cut off")
    return DerValue(data[at], data[start : start + size], data[at : start + size])


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
# Algorithms that include their digest: RSA and ECDSA with SHA-256, SHA-384 and SHA-512.
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
    """A claim of the signature is false."""


class Unsupported(ValueError):
    """A kind of signature that is not checked here; this does not mean that it is false."""


class Stamp(NamedTuple):
    at: datetime
    certificate: x509.Certificate
    others: list[x509.Certificate]


def read_stamp(token: bytes, message: bytes, certificates: list[x509.Certificate]) -> Stamp:
    """Return the timestamp of a message; raise Broken if it belongs to another message or its signature is invalid.

    `token` is a TimeStampResp, as servers send it, or the token alone. Its certificate is among those in the token
    or among `certificates`.
    """
    try:
        signed = _signed_data(read_der(token))
        content, info = _content(signed)
        moment = _check_info(info, message)
        known = [*certificates, *_brought(signed)]
        signer = signed[-1].expect(SET).parts()
        if len(signer) != 1:
            raise Broken("a timestamp has one signer")
        certificate = _check_signer(signer[0].expect(SEQUENCE).parts(), content, known)
    except (NotDer, IndexError, UnicodeDecodeError, OverflowError) as exc:
        raise Broken(f"the timestamp makes no sense ({exc})") from exc
    return Stamp(moment, certificate, [one for one in known if one != certificate])


def _signed_data(value: DerValue) -> list[DerValue]:
    parts = value.expect(SEQUENCE).parts()
    if parts[0].tag == SEQUENCE:
        if parts[0].parts()[0].integer() not in _GRANTED:
            raise Broken("the timestamp was not granted")
        parts = parts[1].expect(SEQUENCE).parts()
    if parts[0].expect(OID).content != _SIGNED_DATA:
        raise Broken("the timestamp is no signed data")
    return read_der(parts[1].expect(_TAG_0).content).expect(SEQUENCE).parts()


def _content(signed: list[DerValue]) -> tuple[bytes, list[DerValue]]:
    kind, wrapped = signed[2].expect(SEQUENCE).parts()[:2]
    if kind.expect(OID).content != _TST_INFO:
        raise Broken("the signed data is not a timestamp")
    content = read_der(wrapped.expect(_TAG_0).content).expect(OCTETS).content
    return content, read_der(content).expect(SEQUENCE).parts()


def _check_info(info: list[DerValue], message: bytes) -> datetime:
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


def _brought(signed: list[DerValue]) -> list[x509.Certificate]:
    found = []
    for one in signed[3:-1]:
        if one.tag == _TAG_0:
            found = [x509.load_der_x509_certificate(each.raw) for each in one.parts() if each.tag == SEQUENCE]
    return found


def _check_signer(parts: list[DerValue], content: bytes, known: list[x509.Certificate]) -> x509.Certificate:
    """Return the certificate of the signer; raise Broken if the signature does not match its key."""
    certificate = _find(parts[1], known)
    digest = _digest(parts[2].expect(SEQUENCE).parts()[0])
    attributes = parts[3].expect(_TAG_0)
    stated = _attributes(attributes)
    if stated.get(_CONTENT_TYPE) is None or stated[_CONTENT_TYPE].expect(OID).content != _TST_INFO:
        raise Broken("the signature of the timestamp is one of something else")
    wanted = hashlib.new(digest.name, content).digest()
    if stated.get(_MESSAGE_DIGEST) is None or stated[_MESSAGE_DIGEST].expect(OCTETS).content != wanted:
        raise Broken("the timestamp was changed after it was signed")
    _check_named(stated, certificate)
    # RFC 5652, section 5.4: the signature covers the set with a set's tag, not with the tag that it is sent with.
    signed = bytes((SET,)) + attributes.raw[1:]
    _verify(certificate, parts[4].expect(SEQUENCE).parts()[0], digest, signed, parts[5].expect(OCTETS).content)
    return certificate


def _attributes(value: DerValue) -> dict[bytes, DerValue]:
    found: dict[bytes, DerValue] = {}
    for one in value.parts():
        kind, values = one.expect(SEQUENCE).parts()
        held = values.expect(SET).parts()
        # If one name has two values, the checked and the used one could differ.
        if kind.expect(OID).content in found or len(held) != 1:
            raise Broken("an attribute of the timestamp stands there twice")
        found[kind.content] = held[0]
    return found


def _check_named(stated: dict[bytes, DerValue], certificate: x509.Certificate) -> None:
    """Check that the signed attributes name the certificate (RFC 5816): another one with the same key is rejected."""
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


def _find(identifier: DerValue, known: list[x509.Certificate]) -> x509.Certificate:
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
    certificate: x509.Certificate, algorithm: DerValue, digest: hashes.HashAlgorithm, signed: bytes, signature: bytes
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


def _digest(algorithm: DerValue) -> hashes.HashAlgorithm:
    found = _DIGESTS.get(algorithm.expect(OID).content)
    if found is None:
        raise Unsupported("the timestamp uses a digest that is not accepted here (SHA-256, SHA-384 and SHA-512 are)")
    return found


_MAX_CHARS = 64 * 1024
_MAX_CERTIFICATES = 16
_MAX_BUNDLE_BYTES = 16 * 1024 * 1024
# A server signs first and then requests the timestamp, and the clocks of both differ.
_SLACK = timedelta(minutes=10)
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")
# Exceptions of the library for nonsensical certificates and keys; some are not ValueErrors.
_NONSENSE = (
    *(ValueError, TypeError, OverflowError, UnsupportedAlgorithm, x509.DuplicateExtension),
    *(x509.InvalidVersion, x509.UnsupportedGeneralNameType),
)


def check_signed_data(signed: dict[str, Any], roots: list[x509.Certificate] | None = None) -> Signature:
    """Verify `signedData` of a package and return the result. `roots` default to those of the system."""
    # The specification has both; a certificate beside the signature distinguishes them.
    kind = "domain" if signed.get("domainCert") else "anonymous"
    by = _domain(signed.get("domain")) if kind == "domain" else _key_name(signed.get("publicKey"))
    finding = Signature(Worth.INVALID, kind, by)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "domain":
                return _check_domain(signed, finding, system_roots() if roots is None else roots)
            return _check_anonymous(signed, finding, roots)
    except Broken as exc:
        return finding.broken(str(exc))
    except Unsupported as exc:
        return finding._replace(worth=Worth.UNTRUSTED, why=str(exc))
    except _NONSENSE:
        return finding.broken("a key or certificate in it makes no sense")


def system_roots() -> list[x509.Certificate]:
    """Return the roots that the system trusts, or those of certifi; empty if both are missing."""
    try:
        path = Path(trust_store())
    except Unavailable:
        if importlib.util.find_spec("certifi") is None:
            return []
        path = Path(importlib.import_module("certifi").where())
    found = []
    with path.open("rb") as bundle, warnings.catch_warnings():
        # Bundles contain roots of the nineties with invalid serial numbers; the library warns about them on the
        # terminal.
        warnings.simplefilter("ignore")
        for match in _PEM.finditer(bundle.read(_MAX_BUNDLE_BYTES)):
            with suppress(*_NONSENSE):  # an invalid root must not exclude the others
                found.append(x509.load_pem_x509_certificate(match[0]))
    return found


def _check_anonymous(signed: dict[str, Any], finding: Signature, roots: list[x509.Certificate] | None) -> Signature:
    key = serialization.load_der_public_key(_base64(signed, "publicKey"))
    _check_signature(signed, key)
    if not signed.get("timeSignature"):
        return finding._replace(worth=Worth.VALID)
    stamp = _stamp_of(signed)
    why = _distrust_of_time(stamp, system_roots() if roots is None else roots)
    return finding._replace(worth=Worth.UNTRUSTED if why else Worth.VALID, at=stamp.at, why=why)


def _check_domain(signed: dict[str, Any], finding: Signature, roots: list[x509.Certificate]) -> Signature:
    chain = _certificates(signed, "domainCert")
    _check_signature(signed, chain[0].public_key())
    if not _is_named(chain[0], finding.by):
        raise Broken(f"its certificate is not one of {finding.by}")
    crossed = _certificates(signed, "crossSignedCert") if signed.get("crossSignedCert") else []
    if crossed and _spki(crossed[0]) != _spki(chain[0]):
        raise Broken("the certificate that signs across has another key")
    created = _created(signed)
    if not signed.get("timeSignature"):
        why = "no timestamp says when it was made"
        return finding._replace(worth=Worth.UNTRUSTED, why=why)
    stamp = _stamp_of(signed)
    if abs(stamp.at - created) > _SLACK:
        raise Broken("it says to be made at another time than its timestamp")
    # Check validity at the time of the timestamp, not today: certificates of hosts last for weeks, packages for years.
    if not chain[0].not_valid_before_utc <= stamp.at <= chain[0].not_valid_after_utc:
        raise Broken("its certificate was not valid when it was made")
    reasons = [_distrust_of_name(chain, finding.by, stamp.at, roots), _distrust_of_time(stamp, roots)]
    if crossed and reasons[0]:
        # WACZ Signing and Verification, step 10: try a second chain to a root if the first leads to none.
        reasons[0] = _distrust_of_name(crossed, finding.by, stamp.at, roots)
    why = "; ".join(one for one in reasons if one)
    return finding._replace(worth=Worth.UNTRUSTED if why else Worth.VALID, at=stamp.at, why=why)


def _check_signature(signed: dict[str, Any], key: object) -> None:
    """Check that the signature covers the text of `hash` (its ASCII, not the digest it names) and matches the key."""
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, _CURVES):
        raise Unsupported("its key is of a kind that is not checked here (ECDSA on P-256, P-384 and P-521 is)")
    raw, message = _base64(signed, "signature"), _text(signed, "hash").encode()
    half = (key.curve.key_size + 7) // 8
    forms = [raw]
    if len(raw) == 2 * half:  # browsers write both numbers side by side, servers write DER
        forms.append(encode_dss_signature(int.from_bytes(raw[:half]), int.from_bytes(raw[half:])))
    for form in forms:
        try:
            key.verify(form, message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            continue
        return
    raise Broken("it is not that of the key beside it")


def _stamp_of(signed: dict[str, Any]) -> Stamp:
    certificates = _certificates(signed, "timestampCert") if signed.get("timestampCert") else []
    message = _text(signed, "signature").encode()
    stamp = read_stamp(_base64(signed, "timeSignature"), message, certificates)
    # Building chains tries combinations: many certificates could make it take very long.
    if len(stamp.others) > 2 * _MAX_CERTIFICATES:
        raise Broken("the timestamp brings too many certificates")
    if not stamp.certificate.not_valid_before_utc <= stamp.at <= stamp.certificate.not_valid_after_utc:
        raise Broken("the certificate of its timestamp was not valid then")
    try:
        usage = stamp.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        usage = x509.ExtendedKeyUsage([])
    if ExtendedKeyUsageOID.TIME_STAMPING not in usage:
        raise Broken("the certificate of its timestamp is not one for timestamps")
    return stamp


def _distrust_of_name(chain: list[x509.Certificate], name: str, at: datetime, roots: list[x509.Certificate]) -> str:
    if roots:
        try:
            builder = PolicyBuilder().store(Store(roots)).time(at)
            builder.build_server_verifier(x509.DNSName(name)).verify(chain[0], chain[1:])
        except (VerificationError, *_NONSENSE):
            pass
        else:
            return ""
    return "its certificate goes back to no root that is trusted here"


def _distrust_of_time(stamp: Stamp, roots: list[x509.Certificate]) -> str:
    if roots:
        # The library's default policy is for web servers, and rejects certificates that are for timestamps only.
        issuers = (
            ExtensionPolicy.permit_all()
            .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _demand_authority)
            .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _demand_signing)
        )
        own = ExtensionPolicy.permit_all()
        builder = PolicyBuilder().store(Store(roots)).time(stamp.at)
        builder = builder.extension_policies(ee_policy=own, ca_policy=issuers)
        try:
            builder.build_client_verifier().verify(stamp.certificate, stamp.others)
        except (VerificationError, *_NONSENSE):
            pass
        else:
            return ""
    return "the certificate of its timestamp goes back to no root that is trusted here"


def _demand_authority(_policy: Policy, _certificate: x509.Certificate, constraints: x509.BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("not an authority")


def _demand_signing(_policy: Policy, _certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("not for certificates")


def _is_named(certificate: x509.Certificate, name: str) -> bool:
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += alternative.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        pass
    wanted = name.lower()
    return any(one in (wanted, "*." + wanted.partition(".")[2]) for one in (known.lower() for known in names))


def _certificates(signed: dict[str, Any], field: str) -> list[x509.Certificate]:
    text = _text(signed, field)
    if text.count("-----BEGIN") > _MAX_CERTIFICATES:
        raise Broken(f"{field} has too many certificates")
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except _NONSENSE as exc:
        raise Broken(f"{field} makes no sense") from exc


def _created(signed: dict[str, Any]) -> datetime:
    try:
        moment = datetime.fromisoformat(_text(signed, "created"))
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as exc:
        raise Broken("created makes no sense") from exc


def _text(signed: dict[str, Any], field: str) -> str:
    value = signed.get(field)
    if not isinstance(value, str) or not value or len(value) > _MAX_CHARS:
        raise Broken(f"{field} is missing or makes no sense")
    if not value.isascii():
        raise Broken(f"{field} makes no sense")
    return value


def _base64(signed: dict[str, Any], field: str) -> bytes:
    try:
        return b64decode(_text(signed, field), validate=True)
    except binascii.Error as exc:
        raise Broken(f"{field} makes no sense") from exc


def _domain(name: object) -> str:
    """Return the signing host name; an invalid one is not echoed, because it would reach a terminal."""
    return name if isinstance(name, str) and _HOST.fullmatch(name) else "no host name"


def _key_name(key: object) -> str:
    if not isinstance(key, str) or len(key) > _MAX_CHARS:
        return "that it does not name"
    try:
        return f"sha256:{hashlib.sha256(b64decode(key, validate=True)).hexdigest()}"
    except (binascii.Error, ValueError):
        return "that it does not name"


def _spki(certificate: x509.Certificate) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(serialization.Encoding.DER, form)
