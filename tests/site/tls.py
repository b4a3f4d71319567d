"""Certificates for the encrypted port, made on the spot with the openssl command, wrong where a test asks for it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

Kind = Literal["good", "expired", "wrong-host"]


def make_certificate(folder: Path, hosts: list[str], kind: Kind) -> tuple[Path, Path]:
    """Return the paths of a new self-signed certificate and its key."""
    key, request, extensions, certificate = (folder / name for name in ("key.pem", "csr.pem", "ext.cnf", "cert.pem"))
    names = ["DNS:wrong.example"] if kind == "wrong-host" else ["DNS:localhost", *(f"IP:{host}" for host in hosts)]
    extensions.write_text(f"subjectAltName={','.join(names)}\nbasicConstraints=critical,CA:TRUE\n")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    _openssl("req", "-new", *curve, "-keyout", str(key), "-out", str(request), "-subj", "/CN=misbehaving web")
    lifetime = "-1" if kind == "expired" else "2"
    signing = ["-signkey", str(key), "-days", lifetime, "-extfile", str(extensions)]
    _openssl("x509", "-req", "-in", str(request), *signing, "-out", str(certificate))
    return certificate, key


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
