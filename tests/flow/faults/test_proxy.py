"""The misbehaving proxy does what each of its modes says."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.flow.faults.proxy import Mode, Proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy in front of a server that echoes."""
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_echo, args=(listener,), daemon=True).start()
    with Proxy(*listener.getsockname(), delay_s=0.05, bytes_per_s=10_000) as running:
        yield running
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _echo(listener: socket.socket) -> None:
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(sock,), daemon=True).start()


def _answer(sock: socket.socket) -> None:
    with sock:
        try:
            while data := sock.recv(65_536):
                sock.sendall(data)
        except OSError:
            return


def _dial(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=10.0)


def _hear_nothing(sock: socket.socket) -> None:
    sock.settimeout(0.1)
    with pytest.raises(TimeoutError):
        sock.recv(10)
    sock.settimeout(10.0)


def _say(sock: socket.socket, words: bytes) -> bytes:
    sock.sendall(words)
    heard = b""
    while len(heard) < len(words):
        heard += sock.recv(65_536)
    return heard


def test_pass_carries_bytes_and_closes_both_ways(proxy: Proxy) -> None:
    with _dial(proxy) as sock:
        assert _say(sock, b"hello") == b"hello"
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""
    assert proxy.accepted == 1


def test_drop_loses_bytes_and_the_connection_is_not_trusted_again(proxy: Proxy) -> None:
    with _dial(proxy) as sock:
        _say(sock, b"hello")
        proxy.set_mode(Mode.DROP)
        sock.sendall(b"lost")
        _hear_nothing(sock)
        proxy.set_mode(Mode.PASS)
        with pytest.raises(ConnectionResetError):
            sock.recv(10)
    with _dial(proxy) as sock:
        assert _say(sock, b"new") == b"new"


def test_drop_still_passes_a_close(proxy: Proxy) -> None:
    with _dial(proxy) as sock:
        _say(sock, b"hello")
        proxy.set_mode(Mode.DROP)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(10) == b""


def test_delay_adds_its_time_in_each_direction(proxy: Proxy) -> None:
    with _dial(proxy) as sock:
        proxy.set_mode(Mode.DELAY)
        started = time.monotonic()
        assert _say(sock, b"hello") == b"hello"
        assert time.monotonic() - started >= 0.1


def test_throttle_holds_the_rate(proxy: Proxy) -> None:
    with _dial(proxy) as sock:
        proxy.set_mode(Mode.THROTTLE)
        started = time.monotonic()
        assert _say(sock, b"x" * 1_500) == b"x" * 1_500
        assert time.monotonic() - started >= 0.15


def test_half_open_says_nothing_and_hides_even_a_close(proxy: Proxy) -> None:
    with _dial(proxy) as standing, _dial(proxy) as closing:
        _say(standing, b"hello")
        _say(closing, b"hello")
        proxy.set_mode(Mode.HALF_OPEN)
        standing.sendall(b"anybody?")
        closing.shutdown(socket.SHUT_WR)
        with _dial(proxy) as new:
            for sock in (standing, closing, new):
                _hear_nothing(sock)


def test_reset_breaks_what_stands_and_what_comes(proxy: Proxy) -> None:
    with _dial(proxy) as sock:
        _say(sock, b"hello")
        proxy.set_mode(Mode.RESET)
        with pytest.raises(ConnectionResetError):
            sock.recv(10)
    with pytest.raises(ConnectionResetError), _dial(proxy) as sock:
        sock.recv(10)
    proxy.set_mode(Mode.PASS)
    with _dial(proxy) as sock:
        assert _say(sock, b"again") == b"again"
