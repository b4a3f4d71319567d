"""The server behind the misbehaving web, and the log that judges politeness."""

from __future__ import annotations

import socket
import ssl
import threading
import time

import pytest

from tests import patience
from tests.site import Exchange, Site
from tests.site.readme import README, render
from tests.site.wire import hung_up
from tests.unit.site.client import ask


def test_every_host_answers_on_one_port_and_is_named_in_the_log(site: Site) -> None:
    for host in range(8):
        ask(site, f"/meta/title?host={host}", host=host, headers="User-Agent: tester\r\nCookie: a=1\r\n")

    log = site.settled()

    assert [(entry.host, entry.port, entry.path) for entry in log] == [
        (f"127.0.0.{host + 2}", site.port, f"/meta/title?host={host}") for host in range(8)
    ]
    assert {(entry.status, entry.user_agent, entry.cookie, entry.method) for entry in log} == {
        (200, "tester", "a=1", "GET")
    }
    assert all(entry.end is not None and entry.start <= entry.end for entry in log)


def test_requests_on_one_kept_connection_share_its_number(site: Site) -> None:
    with socket.create_connection((site.hosts[0], site.port)) as sock:
        request = f"GET /meta/title HTTP/1.1\r\nHost: {site.hosts[0]}\r\n\r\n".encode()
        for _ in range(2):
            sock.sendall(request)
            assert b"200 OK" in sock.recv(65_536)
        sock.sendall(request * 2)
    ask(site, "/meta/title")

    connections = [entry.connection for entry in site.settled()]
    assert connections[0] == connections[1]
    assert connections[-1] != connections[0]


def test_a_request_starts_when_it_arrives_even_if_the_site_is_busy(site: Site) -> None:
    busy, hog_s = threading.Event(), patience.allowed(0.5)

    async def hog(exchange: Exchange) -> None:
        busy.set()
        time.sleep(hog_s)  # noqa: ASYNC251 - a busy event loop is the point
        await exchange.reply("done")

    site.on("/hog", hog)
    hogging = threading.Thread(target=ask, args=(site, "/hog"))
    hogging.start()
    busy.wait()
    sent = time.monotonic()
    ask(site, "/meta/title", host=1)
    hogging.join()

    second = next(entry for entry in site.settled() if entry.path == "/meta/title")
    assert second.start - sent < 0.8 * hog_s


def test_a_client_that_hangs_up_ends_its_request(site: Site) -> None:
    ask(site, "/slow/silent", first_s=0.05)

    (entry,) = site.settled()

    assert entry.aborted
    assert entry.status is None
    assert entry.end is not None


def test_an_open_request_is_in_the_log_before_it_ends(site: Site) -> None:
    with socket.create_connection((site.hosts[0], site.port)) as sock:
        sock.sendall(b"GET /slow/stall HTTP/1.1\r\n\r\n")
        sock.recv(10)

        (entry,) = site.log()

    assert (entry.path, entry.end) == ("/slow/stall", None)


def test_a_test_adds_pages_for_one_host_or_for_all(site: Site) -> None:
    site.serve("/mine", "everywhere", media="text/plain")
    site.serve("/mine", "here", host=2, status=418)

    assert ask(site, "/mine").body == b"everywhere"
    assert (ask(site, "/mine", host=2).status, ask(site, "/mine", host=2).body) == (418, b"here")


def test_a_page_that_breaks_is_named() -> None:
    async def broken(exchange: Exchange) -> None:
        raise RuntimeError("no such luck")

    with Site.start(hosts=1) as site:
        site.on("/broken", broken)
        ask(site, "/broken")
        site.settled()

        assert site.faults() == ["/broken: RuntimeError('no such luck')"]


def test_retry_after_is_logged_in_seconds(site: Site) -> None:
    for path in ("/status/429?after=3", "/status/after-huge", "/status/after-nan", "/status/busy-date?after=10"):
        ask(site, path)

    asked = [entry.retry_after for entry in site.settled()]

    assert asked[:3] == [3.0, 86_400.0, None]
    assert asked[3] == pytest.approx(9.5, abs=0.6)


def test_an_ordinary_site_can_be_walked_to_its_last_page(site: Site) -> None:
    todo, seen = ["/"], set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        body = ask(site, path).body.decode()
        todo += [part.split('"', 1)[0] for part in body.split('<a href="')[1:] if part.startswith("/")]

    assert {f"http://{site.hosts[0]}:{site.port}{path}" for path in seen} == set(site.urls()[:12])
    assert ask(site, "/").body == ask(site, "/").body


def test_a_rough_site_is_busy_once_and_leads_to_other_hosts() -> None:
    with Site.start(hosts=2, pages=20, rough=True) as site:
        first, second = ask(site, "/a/p5.html"), ask(site, "/a/p5.html")

        assert (first.status, first.header("retry-after"), second.status) == (503, "1", 200)
        assert b"/redirect/other-host" in ask(site, "/a/p2.html").body


def test_a_site_in_its_own_process_serves_the_same_and_dies_with_its_handle() -> None:
    with Site.start(hosts=2, pages=3, robots={1: "disallow"}, process=True) as site:
        assert ask(site, "/a/p2.html").status == 200
        assert b"Disallow: /" in ask(site, "/robots.txt", host=1).body
        assert [entry.path for entry in site.settled()] == ["/a/p2.html", "/robots.txt"]
        with pytest.raises(RuntimeError, match="process=True"):
            site.serve("/x", "y")
        address = (site.hosts[0], site.port)

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def _shake_hands(site: Site, *, trust: bool = True) -> bytes:
    context = ssl.create_default_context(cafile=site.certificate if trust else None)
    with (
        socket.create_connection((site.hosts[0], site.tls_port or 0), timeout=patience.deadline(10.0)) as plain,
        context.wrap_socket(plain, server_hostname=site.hosts[0]) as sock,
    ):
        sock.sendall(b"GET /meta/title HTTP/1.1\r\nConnection: close\r\n\r\n")
        return sock.recv(100)


def test_the_encrypted_port_is_good_for_those_who_trust_it() -> None:
    with Site.start(hosts=1, tls="good") as site:
        assert _shake_hands(site).startswith(b"HTTP/1.1 200")
        assert site.url(0, "/", scheme="https") == f"https://127.0.0.2:{site.tls_port}/"
        assert [entry.port for entry in site.settled()] == [site.tls_port]
        with pytest.raises(ssl.SSLCertVerificationError, match="self-signed"):
            _shake_hands(site, trust=False)


@pytest.mark.parametrize(("kind", "complaint"), [("expired", "expired"), ("wrong-host", "IP address mismatch")])
def test_a_bad_certificate_is_bad_as_named(kind: str, complaint: str) -> None:
    with (
        Site.start(hosts=1, tls="expired" if kind == "expired" else "wrong-host") as site,
        pytest.raises(ssl.SSLCertVerificationError, match=complaint),
    ):
        _shake_hands(site)


def test_a_stalled_handshake_never_answers() -> None:
    with (
        Site.start(hosts=1, tls="stalled") as site,
        socket.create_connection((site.hosts[0], site.tls_port or 0), timeout=0.1) as sock,
        pytest.raises(TimeoutError),
    ):
        ssl.create_default_context().wrap_socket(sock, server_hostname="x")


def test_the_readme_lists_every_page() -> None:
    assert README.read_text() == render(), "run: python -m tests.site.readme"


def test_the_kernel_tells_when_a_client_hung_up_however_late_it_is_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        served, _ = listener.accept()
        with served:
            before = time.monotonic()
            client.close()
            after = time.monotonic()
            time.sleep(0.2)
            told = hung_up(served)

    # It counts in milliseconds.
    assert before - 0.02 <= told <= after + 0.02
