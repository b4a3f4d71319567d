"""The check of a WACZ signature: the key, the certificate and its chain, the timestamp and its chain.

Roots are those of the system; nothing is fetched, and whether a certificate was revoked is not asked.
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
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from holdfast.errors import Unavailable
from holdfast.fetch.guard import trust_store
from holdfast.imports.signatures import Signature, Worth
from holdfast.imports.timestamps import Broken, Stamp, Unsupported, read_stamp

_MAX_CHARS = 64 * 1024
_MAX_CERTIFICATES = 16
_MAX_BUNDLE_BYTES = 16 * 1024 * 1024
_SLACK = timedelta(minutes=10)
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}")
# What the library raises of certificates and keys that make no sense; some of it is no ValueError.
_NONSENSE = (
    ValueError,
    TypeError,
    OverflowError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


def check_signed_data(signed: dict[str, Any], roots: list[x509.Certificate] | None = None) -> Signature:
    """Return what `signedData` of a package is worth. `roots` are those of the system unless they are given."""
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
        return finding._replace(why=str(exc))
    except Unsupported as exc:
        return finding._replace(worth=Worth.UNTRUSTED, why=str(exc))
    except _NONSENSE:
        return finding._replace(why="a key or certificate in it makes no sense")


def system_roots() -> list[x509.Certificate]:
    """Return the roots that the system trusts, or those of certifi; none if there are neither."""
    try:
        path = Path(trust_store())
    except Unavailable:
        if importlib.util.find_spec("certifi") is None:
            return []
        path = Path(importlib.import_module("certifi").where())
    found = []
    with path.open("rb") as bundle, warnings.catch_warnings():
        # Bundles hold roots of the nineties with serial numbers that are none; the library tells the terminal so.
        warnings.simplefilter("ignore")
        for match in _PEM.finditer(bundle.read(_MAX_BUNDLE_BYTES)):
            with suppress(*_NONSENSE):  # one bad root takes no other with it
                found.append(x509.load_pem_x509_certificate(match[0]))
    return found


def _check_anonymous(signed: dict[str, Any], finding: Signature, roots: list[x509.Certificate] | None) -> Signature:
    key = serialization.load_der_public_key(_base64(signed, "publicKey"))
    _judge_signature(signed, key)
    if not signed.get("timeSignature"):
        return finding._replace(worth=Worth.VALID)
    stamp = _stamp(signed)
    why = _distrust_of_time(stamp, system_roots() if roots is None else roots)
    return finding._replace(worth=Worth.UNTRUSTED if why else Worth.VALID, at=stamp.at, why=why)


def _check_domain(signed: dict[str, Any], finding: Signature, roots: list[x509.Certificate]) -> Signature:
    chain = _certificates(signed, "domainCert")
    _judge_signature(signed, chain[0].public_key())
    if not _is_named(chain[0], finding.by):
        raise Broken(f"its certificate is not one of {finding.by}")
    crossed = _certificates(signed, "crossSignedCert") if signed.get("crossSignedCert") else []
    if crossed and _spki(crossed[0]) != _spki(chain[0]):
        raise Broken("the certificate that signs across has another key")
    created = _created(signed)
    if not signed.get("timeSignature"):
        why = "no timestamp says when it was made"
        return finding._replace(worth=Worth.UNTRUSTED, why=why)
    stamp = _stamp(signed)
    if abs(stamp.at - created) > _SLACK:
        raise Broken("it says to be made at another time than its timestamp")
    if not chain[0].not_valid_before_utc <= stamp.at <= chain[0].not_valid_after_utc:
        raise Broken("its certificate was not valid when it was made")
    reasons = [_distrust_of_name(chain, finding.by, stamp.at, roots), _distrust_of_time(stamp, roots)]
    if crossed and reasons[0]:
        # Step 10 of the specification: the other road to a root, if the first leads to none.
        reasons[0] = _distrust_of_name(crossed, finding.by, stamp.at, roots)
    why = "; ".join(one for one in reasons if one)
    return finding._replace(worth=Worth.UNTRUSTED if why else Worth.VALID, at=stamp.at, why=why)


def _judge_signature(signed: dict[str, Any], key: object) -> None:
    """Demand that the signature is one of the text of `hash` (its ASCII, not the digest it names) by this key."""
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


def _stamp(signed: dict[str, Any]) -> Stamp:
    """Return the timestamp: one of the signature as it is written, in base64."""
    certificates = _certificates(signed, "timestampCert") if signed.get("timestampCert") else []
    message = _text(signed, "signature").encode()
    stamp = read_stamp(_base64(signed, "timeSignature"), message, certificates)
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
    """Return why the certificate of a host is not trusted; nothing if it is."""
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
    """Return why the certificate of a timestamp is not trusted; nothing if it is."""
    if roots:
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
    """Return whether a certificate is one of this host name, by its alternative names or its common name."""
    names = [str(one.value) for one in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names += alternative.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        pass
    wanted = name.lower()
    return any(one in (wanted, "*." + wanted.partition(".")[2]) for one in (known.lower() for known in names))


def _certificates(signed: dict[str, Any], field: str) -> list[x509.Certificate]:
    """Return a chain, the certificate itself first."""
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
    """Return the host name that signs; what is none, and would reach a terminal, is not repeated."""
    return name if isinstance(name, str) and _HOST.fullmatch(name) else "no host name"


def _key_name(key: object) -> str:
    """Return the name of a public key: the SHA-256 of what it says, so that two can be compared."""
    if not isinstance(key, str) or len(key) > _MAX_CHARS:
        return "that it does not name"
    try:
        return f"sha256:{hashlib.sha256(b64decode(key, validate=True)).hexdigest()}"
    except (binascii.Error, ValueError):
        return "that it does not name"


def _spki(certificate: x509.Certificate) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(serialization.Encoding.DER, form)
