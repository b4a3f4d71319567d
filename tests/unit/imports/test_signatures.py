"""Signatures of packages: which hold, which are not trusted, which are false. Keys and certificates are made here."""

from __future__ import annotations

import random
import subprocess
import sys
from base64 import b64decode, b64encode
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from holdfast.imports.packages import open_package
from holdfast.imports.signatures import Signature, Worth, check_signed_data, system_roots
from tests.unit.imports.signing import (
    NAME,
    Pair,
    authority,
    digest_of,
    issue,
    listing,
    now,
    sign_anonymously,
    sign_as_domain,
    stamp,
    write_signed,
)

DIGEST = digest_of(b"a list of resources")
WARC = ("archive/a.warc", b"WARC/1.1\r\n")


@pytest.fixture(scope="module")
def root() -> Pair:
    """A root that signs certificates of hosts and of clocks."""
    return authority()


@pytest.fixture(scope="module")
def signed(root: Pair, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A good signature by a host name."""
    return sign_as_domain(DIGEST, tmp_path_factory.mktemp("ts"), issue(root), issue(root, for_time=True), root)


def _judged(signed: dict[str, Any], *roots: Pair) -> Signature:
    return check_signed_data(signed, [one.certificate for one in roots])


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda one: str(one.name))
@pytest.mark.parametrize("as_der", [False, True], ids=["raw", "der"])
def test_a_key_of_its_own_signs_its_digest_and_no_other(curve: ec.EllipticCurve, as_der: bool) -> None:
    key = ec.generate_private_key(curve)
    good = sign_anonymously(DIGEST, key, as_der=as_der)
    foreign = sign_anonymously(DIGEST, ec.generate_private_key(curve), as_der=as_der)

    assert _judged(good)[:2] == (Worth.VALID, "anonymous")
    assert _judged(good).by.startswith("sha256:")
    assert _judged(good | {"hash": digest_of(b"other")}).worth is Worth.INVALID
    assert _judged(good | {"publicKey": foreign["publicKey"]}).worth is Worth.INVALID
    assert _judged(good | {"signature": "AAAA"}).worth is Worth.INVALID


def test_a_key_of_its_own_may_come_with_the_time(root: Pair, tmp_path: Path) -> None:
    good = sign_anonymously(DIGEST, ec.generate_private_key(ec.SECP384R1()))
    clock = issue(root, for_time=True)
    good["timeSignature"] = b64encode(stamp(tmp_path, good["signature"].encode(), clock)).decode()

    assert _judged(good, root).worth is Worth.VALID
    assert _judged(good, root).at is not None
    assert _judged(good, authority("Another")).worth is Worth.UNTRUSTED


def test_a_host_name_and_its_time_are_told_where_both_are_trusted(signed: dict[str, Any], root: Pair) -> None:
    found = _judged(signed, root)

    assert (found.worth, found.kind, found.by, found.why) == (Worth.VALID, "domain", NAME, "")
    assert found.at is not None
    assert abs(found.at - now()) < timedelta(minutes=10)
    assert found.sentence().startswith(f"signed by {NAME} on {found.at:%Y-%m-%d}")


def test_a_chain_that_goes_back_to_no_known_root_is_not_trusted(signed: dict[str, Any]) -> None:
    for roots in ((), (authority("Another"),)):
        found = _judged(signed, *roots)
        assert found.worth is Worth.UNTRUSTED
        assert "its certificate goes back to no root" in found.why
        assert "the certificate of its timestamp goes back to no root" in found.why


def test_name_and_time_are_trusted_apart(root: Pair, tmp_path: Path) -> None:
    other = authority("A root of clocks")
    signed = sign_as_domain(DIGEST, tmp_path, issue(root), issue(other, for_time=True), root)

    assert _judged(signed, root).why == "the certificate of its timestamp goes back to no root that is trusted here"
    assert _judged(signed, other).why == "its certificate goes back to no root that is trusted here"
    assert _judged(signed, root, other).worth is Worth.VALID


def test_without_a_timestamp_the_name_is_not_trusted(signed: dict[str, Any], root: Pair) -> None:
    found = _judged({key: value for key, value in signed.items() if not key.startswith("time")}, root)

    assert (found.worth, found.at) == (Worth.UNTRUSTED, None)


def test_a_certificate_that_signs_across_is_another_road_to_a_root(root: Pair, tmp_path: Path) -> None:
    own = authority("A root of the house")
    owner = issue(own)
    crossed = issue(root, key=owner.key)
    signed = sign_as_domain(DIGEST, tmp_path, owner, issue(root, for_time=True), own)

    assert _judged(signed, root).worth is Worth.UNTRUSTED
    assert _judged(signed | {"crossSignedCert": crossed.pem}, root).worth is Worth.VALID
    assert _judged(signed | {"crossSignedCert": issue(root).pem}, root).worth is Worth.INVALID


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hash": digest_of(b"other")}, "not that of the key"),
        ({"domain": "other.example.org"}, "not one of other.example.org"),
        ({"domain": None}, "not one of no host name"),
        ({"domain": "\x1b[2Jarchive.example.org"}, "not one of no host name"),
        ({"created": "2020-01-01T00:00:00Z"}, "at another time"),
        ({"created": "yesterday"}, "created makes no sense"),
        ({"created": "9999-12-31T23:59:59-12:00"}, "created makes no sense"),
        ({"domainCert": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}, "domainCert makes no sense"),
        ({"domainCert": "-----BEGIN" * 20}, "too many"),
        ({"domainCert": ["x"]}, "domainCert is missing or makes no sense"),
        ({"timeSignature": "AAAA"}, "timestamp makes no sense"),
        ({"timeSignature": "A" * 100_000}, "timeSignature is missing or makes no sense"),
        ({"timestampCert": "garbage"}, "timestampCert makes no sense"),
    ],
)
def test_what_was_changed_does_not_hold(
    signed: dict[str, Any], root: Pair, change: dict[str, object], why: str
) -> None:
    found = _judged(signed | change, root)

    assert found.worth is Worth.INVALID
    assert why in found.why


def test_a_timestamp_of_something_else_does_not_hold(root: Pair, signed: dict[str, Any], tmp_path: Path) -> None:
    token = stamp(tmp_path, b"something else", issue(root, for_time=True))

    found = _judged(signed | {"timeSignature": b64encode(token).decode()}, root)

    assert (found.worth, found.why) == (Worth.INVALID, "the timestamp is one of another signature")


def test_a_weak_digest_in_a_timestamp_is_not_relied_on(root: Pair, signed: dict[str, Any], tmp_path: Path) -> None:
    clock = issue(root, for_time=True)
    token = stamp(tmp_path, signed["signature"].encode(), clock, digest="sha1")

    found = _judged(signed | {"timeSignature": b64encode(token).decode()}, root)

    assert found.worth is Worth.UNTRUSTED
    assert "digest" in found.why


def test_a_certificate_that_had_expired_does_not_hold(root: Pair, tmp_path: Path) -> None:
    expired = issue(root, ends=timedelta(days=-1))

    found = _judged(sign_as_domain(DIGEST, tmp_path, expired, issue(root, for_time=True), root), root)

    assert (found.worth, found.why) == (Worth.INVALID, "its certificate was not valid when it was made")


def test_a_key_of_a_kind_that_is_not_known_is_not_relied_on() -> None:
    good = sign_anonymously(DIGEST, ec.generate_private_key(ec.SECP256R1()))
    other = ed25519.Ed25519PrivateKey.generate().public_key().public_bytes_raw()
    spki = bytes.fromhex("302a300506032b6570032100") + other

    assert _judged(good | {"publicKey": b64encode(spki).decode()}).worth is Worth.UNTRUSTED


def test_any_flipped_byte_of_a_timestamp_is_noticed_and_never_raises(signed: dict[str, Any], root: Pair) -> None:
    token = b64decode(signed["timeSignature"])
    chance = random.Random(1)
    for at in chance.sample(range(len(token)), 150):
        changed = token[:at] + bytes((token[at] ^ (1 << chance.randrange(8)),)) + token[at + 1 :]
        found = _judged(signed | {"timeSignature": b64encode(changed).decode()}, root)
        if found.worth is Worth.VALID:  # a bit that nothing covers, as in the text around the token
            assert found.at == _judged(signed, root).at
    for end in range(0, len(token), 25):
        cut = b64encode(token[:end]).decode()
        assert end == 0 or _judged(signed | {"timeSignature": cut}, root).worth is Worth.INVALID


@pytest.mark.parametrize("garbage", [None, 3, "", "A", "é", [], {}, "-----BEGIN CERTIFICATE-----", "\x00" * 50, True])
def test_garbage_in_any_field_never_raises(signed: dict[str, Any], root: Pair, garbage: object) -> None:
    anonymous = sign_anonymously(DIGEST, ec.generate_private_key(ec.SECP256R1()))
    for whole in (signed, anonymous):
        for field in whole:
            assert isinstance(_judged(whole | {field: garbage}, root), Signature)
    assert _judged({}).worth is Worth.INVALID


def test_the_roots_of_the_system_are_found() -> None:
    assert len(system_roots()) > 20


def test_what_a_package_is_signed_with_is_told(root: Pair, tmp_path: Path) -> None:
    digest = digest_of(listing(WARC))
    key = ec.generate_private_key(ec.SECP256R1())
    good = write_signed(tmp_path / "a.wacz", sign_anonymously(digest, key), WARC)
    foreign = write_signed(tmp_path / "b.wacz", sign_anonymously(DIGEST, key), WARC)
    unknown = sign_as_domain(digest, tmp_path, issue(root), issue(root, for_time=True), root)

    found = []
    for path in (good, foreign, write_signed(tmp_path / "c.wacz", unknown, WARC)):
        with open_package(path) as package:
            found.append(package.fixity())

    assert [len(one.problems) for one in found] == [0, 1, 0]
    assert "one of another datapackage.json" in found[1].problems[0]
    assert [one.signature.worth for one in found if one.signature] == [Worth.VALID, Worth.INVALID, Worth.UNTRUSTED]
    assert [len(one.notes) for one in found] == [1, 0, 1]


def test_a_command_that_meets_no_signature_loads_no_cryptography() -> None:
    code = "import sys, holdfast.cli.index; sys.exit('cryptography' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
