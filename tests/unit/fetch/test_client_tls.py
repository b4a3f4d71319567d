"""Certificates: verified by default, looked past only where that is allowed, and then it is recorded."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.types import FetchProblem
from tests import patience
from tests.unit.fetch.servers import OK, Peer, answering, ask, content, fail, open_client, run, serving


class Authority:
    """A certificate authority of the test's own, made with the openssl command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.bundle = folder / "ca.pem"
        self._openssl("req", "-x509", *self._new_key("ca"), "-subj", "/CN=Test CA", "-days", "2", "-out", self.bundle)

    def _openssl(self, *arguments: str | Path) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=self._folder)

    def _new_key(self, name: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]

    def issue(self, name: str, alternative: str, *, days: int = 2) -> ssl.SSLContext:
        """Return a server's context with a certificate for this alternative name; negative days make it expired."""
        self._openssl("req", *self._new_key(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        (self._folder / f"{name}.ext").write_text(f"subjectAltName={alternative}\n")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-days", str(days), "-extfile", f"{name}.ext", "-out", f"{name}.pem"),
        )
        return self._context(name)

    def self_signed(self, name: str, alternative: str) -> ssl.SSLContext:
        """Return a server's context that no authority vouches for."""
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}"]
        self._openssl("req", "-x509", *self._new_key(name), *subject, "-days", "2", "-out", f"{name}.pem")
        return self._context(name)

    def _context(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def valid(authority: Authority) -> ssl.SSLContext:
    return authority.issue("valid", "IP:127.0.0.1")


def _wrong_host(authority: Authority) -> ssl.SSLContext:
    return authority.issue("wrong", "DNS:elsewhere.test")


def _expired(authority: Authority) -> ssl.SSLContext:
    return authority.issue("expired", "IP:127.0.0.1", days=-1)


def _self_signed(authority: Authority) -> ssl.SSLContext:
    return authority.self_signed("alone", "IP:127.0.0.1")


def test_a_valid_certificate_is_recorded_as_verified(authority: Authority, valid: ssl.SSLContext) -> None:
    async def main() -> None:
        async with (
            serving(answering(OK, then_wait=True), tls=valid) as server,
            open_client(ca_file=authority.bundle) as client,
        ):
            for _ in range(3):
                fetched = await ask(client, server.url(scheme="https"))
                assert fetched.tls_verified is True
                assert fetched.request_head == server.requests[-1]
                assert content(fetched) == b"ok"

            assert server.connections == 1

    run(main())


@pytest.mark.parametrize("make", [_wrong_host, _expired, _self_signed])
def test_an_invalid_certificate_fails_unless_it_is_allowed(
    authority: Authority, make: Callable[[Authority], ssl.SSLContext]
) -> None:
    context = make(authority)

    async def main() -> None:
        async with serving(answering(OK), tls=context) as server, open_client(ca_file=authority.bundle) as client:
            failed = await fail(client, server.url(scheme="https"))

            assert failed.problem is FetchProblem.TLS
            assert server.requests == []
        async with (
            serving(answering(OK, then_wait=True), tls=context) as server,
            open_client(ca_file=authority.bundle, allow_invalid_tls=True) as client,
        ):
            for _ in range(3):
                fetched = await ask(client, server.url(scheme="https"))
                assert fetched.tls_verified is False
                assert content(fetched) == b"ok"

            assert server.connections <= 2

    run(main())


def test_a_valid_certificate_stays_verified_where_invalid_ones_are_allowed(
    authority: Authority, valid: ssl.SSLContext
) -> None:
    async def main() -> None:
        async with (
            serving(answering(OK), tls=valid) as server,
            open_client(ca_file=authority.bundle, allow_invalid_tls=True) as client,
        ):
            assert (await ask(client, server.url(scheme="https"))).tls_verified is True

    run(main())


def test_a_stalled_handshake_ends_at_the_deadline(authority: Authority) -> None:
    async def stall(peer: Peer) -> None:
        await peer.gone()

    async def main() -> None:
        async with serving(stall) as server, open_client(ca_file=authority.bundle) as client:
            failed = await fail(client, server.url(scheme="https"), deadline_s=0.25)

            assert failed.problem is FetchProblem.TIMEOUT
            assert failed.took_s < patience.allowed(0.75)
            assert failed.sent_s is None

    run(main())


def test_a_server_that_speaks_no_tls_or_hangs_up_is_told_apart(authority: Authority) -> None:
    async def plain(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.gone()

    async def hang_up(peer: Peer) -> None:
        peer.reset()

    async def main() -> None:
        async with serving(plain) as server, open_client(ca_file=authority.bundle) as client:
            assert (await fail(client, server.url(scheme="https"))).problem is FetchProblem.TLS
        async with serving(hang_up) as server, open_client(ca_file=authority.bundle) as client:
            assert (await fail(client, server.url(scheme="https"))).problem is FetchProblem.DISCONNECTED

    run(main())


def test_an_old_protocol_is_refused(authority: Authority) -> None:
    context = authority.issue("old", "IP:127.0.0.1")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1

    async def main() -> None:
        async with serving(answering(OK), tls=context) as server, open_client(ca_file=authority.bundle) as client:
            failed = await fail(client, server.url(scheme="https"))

            # Whether the alert or the end of the connection is seen first is up to the server.
            assert failed.problem in (FetchProblem.TLS, FetchProblem.DISCONNECTED)

    run(main())


def test_only_http_1_is_offered(authority: Authority) -> None:
    context = authority.issue("alpn", "IP:127.0.0.1")
    context.set_alpn_protocols(["h2", "http/1.1"])
    chosen: list[str | None] = []

    async def note(peer: Peer) -> None:
        await peer.request()
        chosen.append(peer.alpn())
        await peer.send(OK)

    async def main() -> None:
        async with serving(note, tls=context) as server, open_client(ca_file=authority.bundle) as client:
            await ask(client, server.url(scheme="https"))

    run(main())
    assert chosen == ["http/1.1"]


def test_a_body_cut_inside_tls_is_a_disconnect(authority: Authority, valid: ssl.SSLContext) -> None:
    async def cut(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n\r\nwithout a length")
        await asyncio.sleep(0.02)
        peer.reset()

    async def main() -> None:
        async with serving(cut, tls=valid) as server, open_client(ca_file=authority.bundle) as client:
            fetched = await ask(client, server.url(scheme="https"))

            assert fetched.truncated == "disconnect"
            assert content(fetched) == b"without a length"

    run(main())
