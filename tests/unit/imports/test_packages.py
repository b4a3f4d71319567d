"""WACZ packages: the WARC files in them, and what no honest package has."""

from __future__ import annotations

import hashlib
import json
import struct
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.imports.packages import BadPackage, name_in_package, open_package
from holdfast.imports.signatures import Worth, check_signed_data
from tests.unit.index.files import record

WARC = record() * 3


def _package(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it warns of names that come twice
        with zipfile.ZipFile(path, "w", method) as package:
            for name, content in members:
                package.writestr(name, content)
    return path


def _files(path: Path) -> dict[str, bytes]:
    with open_package(path) as package:
        return {name_in_package(file): b"".join(package.pieces(file)) for file in package.files()}


def _refused(path: Path) -> dict[str, str]:
    with open_package(path) as package:
        package.files()
        return dict(package.refused)


def test_the_warc_files_of_a_package_are_read_and_nothing_else(tmp_path: Path) -> None:
    path = _package(
        tmp_path / "a.wacz", ("archive/one.warc", WARC), ("archive/two.warc.gz", b"x"), ("pages/pages.jsonl", b"{}"),
        ("archive/readme.txt", b"no"), ("indexes/index.cdx", b"no"), method=zipfile.ZIP_DEFLATED,
    )  # fmt: skip

    assert _files(path) == {"one.warc": WARC, "two.warc.gz": b"x"}


@pytest.mark.parametrize(
    "name",
    [
        "../../x.warc", "archive/../../x.warc", "/archive/x.warc", "archive/sub/x.warc", "archive\\..\\x.warc",
        "C:\\archive\\x.warc", "archive/x\n.warc", "archive/" + "y" * 400 + ".warc", "archive/.warc/",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_no_member_of_ours(tmp_path: Path, name: str) -> None:
    path = _package(tmp_path / "a.wacz", (name, WARC), ("archive/good.warc", WARC))

    assert list(_files(path)) == ["good.warc"]
    assert list(_refused(path)) == [one for one in (name,) if not name.endswith("/")]


def test_links_encryption_and_second_names_are_refused_one_by_one(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("archive/link.warc")
    link.external_attr = 0o120777 << 16
    secret = zipfile.ZipInfo("archive/secret.warc")
    path = _package(
        tmp_path / "a.wacz", ("archive/good.warc", WARC), (link, b"/etc/passwd"), (secret, WARC),
        ("archive/good.warc", b"another"),
    )  # fmt: skip
    raw = path.read_bytes()
    at = raw.rindex(b"archive/secret.warc") - 46
    path.write_bytes(raw[: at + 8] + struct.pack("<H", 1) + raw[at + 10 :])

    assert _refused(path) == {
        "archive/link.warc": "a link",
        "archive/secret.warc": "encrypted",
        "archive/good.warc": "a second member of this name",
    }
    assert _files(path)["good.warc"] == WARC


def test_a_member_that_would_swell_is_refused(tmp_path: Path) -> None:
    path = _package(
        tmp_path / "a.wacz", ("archive/bomb.warc", bytes(20_000_000)), ("archive/good.warc", WARC),
        method=zipfile.ZIP_DEFLATED,
    )  # fmt: skip

    assert "swell" in _refused(path)["archive/bomb.warc"]


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC), ("archive/two.warc", WARC))
    raw = path.read_bytes()
    at = raw.rindex(b"archive/two.warc") - 46
    path.write_bytes(raw[: at + 42] + struct.pack("<I", 0) + raw[at + 46 :])

    with pytest.raises(BadPackage, match="overlap"):
        _files(path)


def test_a_member_that_is_not_what_the_list_says_is_damaged(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"WARC-Type: response", b"WARC-Type: xxxponse", 1))

    with pytest.raises(BadPackage, match=r"one\.warc.*damaged"):
        _files(path)


def test_a_list_of_a_million_members_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC))
    raw = path.read_bytes()
    at = raw.rindex(b"PK\x05\x06")
    for count, size in ((60_000, 0xFFFFFFF0), (0xFFFF, 70 << 20)):
        path.write_bytes(raw[: at + 10] + struct.pack("<HI", count, size) + raw[at + 16 :])
        with pytest.raises(BadPackage, match="lists"):
            _files(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_package_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.wacz"
    path.write_bytes(content)

    with pytest.raises(BadPackage):
        _files(path)


def test_a_package_cut_anywhere_never_raises_anything_else(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/one.warc", WARC), method=zipfile.ZIP_DEFLATED)
    raw = path.read_bytes()
    for end in range(0, len(raw), 7):
        path.write_bytes(raw[:end])
        with pytest.raises(BadPackage):
            _files(path)
    for at in range(0, len(raw), 3):
        path.write_bytes(raw[:at] + bytes((raw[at] ^ 0xFF,)) + raw[at + 1 :])
        with suppress(BadPackage):
            assert set(_files(path).values()) <= {WARC}


def _listed(*resources: tuple[str, bytes], seal: dict[str, object] | None = None) -> tuple[tuple[str, bytes], ...]:
    """Return members with a list of their digests, sealed."""
    listing = json.dumps({
        "profile": "data-package",
        "resources": [
            {"path": path, "hash": f"sha256:{hashlib.sha256(content).hexdigest()}", "bytes": len(content)}
            for path, content in resources
        ],
    }).encode()  # fmt: skip
    digest = {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(listing).hexdigest()}", **(seal or {})}
    return *resources, ("datapackage.json", listing), ("datapackage-digest.json", json.dumps(digest).encode())


def test_a_package_is_as_it_says(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", *_listed(("archive/a.warc", WARC), ("pages/pages.jsonl", b"{}")))

    with open_package(path) as package:
        fixity = package.fixity()

    assert (fixity.problems, fixity.notes) == ((), ())
    assert fixity.stated["archive/a.warc"] == f"sha256:{hashlib.sha256(WARC).hexdigest()}"


def test_what_was_tampered_with_is_listed(tmp_path: Path) -> None:
    members = dict(_listed(("archive/a.warc", WARC), ("pages/pages.jsonl", b"{}"), ("pages/gone.jsonl", b"")))
    members["pages/pages.jsonl"] = b"[]"
    members["datapackage.json"] += b" "
    del members["pages/gone.jsonl"]

    with open_package(_package(tmp_path / "a.wacz", *members.items())) as package:
        problems = package.fixity().problems

    assert problems == (
        "pages/pages.jsonl does not have the digest that datapackage.json says",
        "pages/gone.jsonl is listed and not there",
        "datapackage.json does not have the digest that datapackage-digest.json says",
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"resources": 3}', b'{"resources": [3]}', b"[" * 100_000])
def test_a_list_that_makes_no_sense_is_said_to_make_none(tmp_path: Path, content: bytes) -> None:
    path = _package(tmp_path / "a.wacz", ("archive/a.warc", WARC), ("datapackage.json", content))

    with open_package(path) as package:
        assert package.fixity().problems == ("datapackage.json makes no sense",)


KEYS = {
    "P-384": (
        "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE7036b314mjy56f47EB/viq/Uifo5lmaAUZTCcTmxQ0w+wL00HMqIZNoTCDb7gJaXP69wolS/mWGTJvnp"
        "GDpJuyYlWKfgbSU3/4O6FQoi9TnA8+KURnOhZ5AVr0dy00wN",
        "DCAIJim/VdbP7/QXxuEJj59yGqrUlzyU3n/8TCJCbOeXxR6Ql+UwHKqkz2IzwC8a/tg1ZObktGfxSEXIIyBx67xiE3qkdPauWlAgUMiQedHrFw0J"
        "y2Tj7tFo5sFRTp2m",
    ),
    "P-256": (
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEFT2DGg/gRSgWlZW2NLCGoR6EyY5Pk/1WAoTwI690Y0165Dm2R6tdR5+Vg5s7jWYdxigubq3CkQ0K"
        "1OGWc5431g==",
        "guOm/oN7gCQcWTkDHmXNQbFzhZS14EYgyPCfvsO7HnMGtYiYPtZlzPac24AhJ/1iNf3NklmIv9gt87rPY85Y/g==",
    ),
}
"""Public keys and signatures that OpenSSL made over `sha256:` and a 7 behind 63 zeros."""


@pytest.mark.parametrize("curve", list(KEYS))
def test_a_signature_holds_for_its_digest_and_no_other(curve: str) -> None:
    key, signature = KEYS[curve]
    signed = {"hash": f"sha256:{7:064}", "publicKey": key, "signature": signature}

    assert check_signed_data(signed).worth is Worth.VALID
    assert check_signed_data(signed | {"hash": f"sha256:{8:064}"}).worth is Worth.INVALID
    assert check_signed_data(signed | {"signature": signature[::-1]}).worth is Worth.INVALID
    assert check_signed_data(signed | {"publicKey": "AAAA"}).worth is Worth.INVALID
    assert check_signed_data(signed | {"domainCert": "-----BEGIN"}).worth is Worth.INVALID


def test_a_signature_of_another_package_is_no_signature(tmp_path: Path) -> None:
    key, signature = KEYS["P-384"]
    seal: dict[str, object] = {
        "signedData": {"hash": f"sha256:{7:064}", "publicKey": key, "signature": signature, "software": "x"}
    }
    with open_package(_package(tmp_path / "a.wacz", *_listed(("archive/a.warc", WARC), seal=seal))) as package:
        fixity = package.fixity()

    assert len(fixity.problems) == 1
    assert fixity.problems[0].endswith("the signature does not hold: it is one of another datapackage.json")
    assert fixity.notes == ()


def test_package_with_too_many_members_is_refused_at_once(tmp_path: Path) -> None:
    path = _package(tmp_path / "a.wacz", *((f"archive/{number}.warc", b"") for number in range(10_001)))
    with pytest.raises(BadPackage, match="lists 10001 members, more than the 10000 that are read"), open_package(path):
        pass

    # As many in truth, and fewer by the number that the end of the file states.
    whole = bytearray(path.read_bytes())
    end = whole.rindex(b"PK\x05\x06")
    whole[end + 8 : end + 12] = struct.pack("<HH", 3, 3)
    path.write_bytes(bytes(whole))
    with pytest.raises(BadPackage, match="more than the 10000"), open_package(path):
        pass
