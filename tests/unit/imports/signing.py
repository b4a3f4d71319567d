"""Keys, certificates and timestamps of our own making, and packages that are signed with them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests import needs

NAME = "archive.example.org"
_CONFIG = """
[tsa]
default_tsa = one
[one]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha1, sha256, sha384, sha512
ess_cert_id_alg = sha256
"""


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        """The certificate as text."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def now() -> datetime:
    """Return this second."""
    return datetime.now(UTC).replace(microsecond=0)


def authority(name: str = "A root") -> Pair:
    """Return a root of its own."""
    key = ec.generate_private_key(ec.SECP384R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    builder = _builder(subject, subject, key.public_key(), now() - timedelta(days=900), now() + timedelta(days=900))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return Pair(builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key)


def issue(
    root: Pair,
    *,
    ends: timedelta = timedelta(days=30),
    for_time: bool = False,
    key: ec.EllipticCurvePrivateKey | None = None,
) -> Pair:
    """Return a certificate for a host, or for timestamps, that a root signed."""
    key, name = key or ec.generate_private_key(ec.SECP256R1()), NAME
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, root.certificate.subject, key.public_key(), now() - timedelta(days=60), now() + ends)
    purpose = ExtendedKeyUsageOID.TIME_STAMPING if for_time else ExtendedKeyUsageOID.SERVER_AUTH
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=for_time)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(root.key.public_key()), critical=False
    )
    if not for_time:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return Pair(builder.sign(root.key, hashes.SHA256()), key)


def stamp(folder: Path, message: bytes, signer: Pair, *, digest: str = "sha256") -> bytes:
    """Return what a timestamp server answers, by the hand of OpenSSL."""
    needs.program("openssl")
    work = folder / f"stamp-{len(list(folder.glob('stamp-*')))}"
    work.mkdir(parents=True)
    key = signer.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for name, content in (
        ("data", message), ("cert.pem", signer.pem.encode()), ("key.pem", key), ("serial", b"01\n"),
        ("config", _CONFIG.format(folder=work).encode()),
    ):  # fmt: skip
        (work / name).write_bytes(content)
    _openssl(work, "-query", "-data", "data", f"-{digest}", "-cert", "-out", "query")
    _openssl(
        work, "-reply", "-config", "config", "-queryfile", "query", "-signer", "cert.pem", "-inkey", "key.pem",
        "-out", "answer",
    )  # fmt: skip
    return (work / "answer").read_bytes()


def sign_anonymously(digest: str, key: ec.EllipticCurvePrivateKey, *, as_der: bool = False) -> dict[str, Any]:
    """Return `signedData` as a browser writes it: both numbers side by side."""
    raw = key.sign(digest.encode(), ec.ECDSA(hashes.SHA256()))
    half = (key.curve.key_size + 7) // 8
    r, s = decode_dss_signature(raw)
    signature = raw if as_der else r.to_bytes(half) + s.to_bytes(half)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {
        "hash": digest,
        "created": f"{now():%Y-%m-%dT%H:%M:%SZ}",
        "software": "a test",
        "signature": b64encode(signature).decode(),
        "publicKey": b64encode(public).decode(),
    }


def sign_as_domain(digest: str, folder: Path, owner: Pair, clock: Pair, *issuers: Pair) -> dict[str, Any]:
    """Return `signedData` as a signing server writes it: certificates, and a timestamp of the signature's text."""
    signature = b64encode(owner.key.sign(digest.encode(), ec.ECDSA(hashes.SHA256()))).decode()
    return {
        "hash": digest,
        "created": f"{now():%Y-%m-%dT%H:%M:%SZ}",
        "software": "a test",
        "version": "0.1.0",
        "signature": signature,
        "domain": NAME,
        "domainCert": owner.pem + "".join(one.pem for one in issuers),
        "timeSignature": b64encode(stamp(folder, signature.encode(), clock)).decode(),
        "timestampCert": clock.pem + "".join(one.pem for one in issuers),
    }


def listing(*resources: tuple[str, bytes]) -> bytes:
    """Return a list of resources with their digests."""
    return json.dumps({
        "profile": "data-package",
        "resources": [
            {"path": path, "hash": f"sha256:{hashlib.sha256(content).hexdigest()}", "bytes": len(content)}
            for path, content in resources
        ],
    }).encode()  # fmt: skip


def digest_of(content: bytes) -> str:
    """Return a digest as packages write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def write_signed(path: Path, signed: dict[str, Any], *resources: tuple[str, bytes]) -> Path:
    """Write a package of these resources whose digest file carries a signature."""
    described = listing(*resources)
    seal = {"path": "datapackage.json", "hash": digest_of(described), "signedData": signed}
    with zipfile.ZipFile(path, "w") as out:
        for name, content in (*resources, ("datapackage.json", described)):
            out.writestr(name, content)
        out.writestr("datapackage-digest.json", json.dumps(seal))
    return path


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", "ts", *arguments], cwd=folder, check=True, capture_output=True)
