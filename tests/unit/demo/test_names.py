"""The demo's nameserver: two names that lead to this machine, the system's answer for all others."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.demo.names import NameServer
from tests import patience

A, AAAA, TXT = 1, 28, 16


@pytest.fixture
def server() -> Iterator[NameServer]:
    """A nameserver that knows one name."""
    with closing(NameServer({"www.town.example": "127.0.0.7"})) as running:
        yield running


def ask(server: NameServer, *datagrams: bytes) -> tuple[int, int, bytes]:
    """Send some datagrams and return code, number of answers and the last bytes of the first that comes back."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as line:
        line.settimeout(patience.deadline(10))
        for datagram in datagrams:
            line.sendto(datagram, ("127.0.0.1", server.port))
        answer = line.recv(4096)
    number, flags, questions, answers = struct.unpack_from("!HHHH", answer)
    assert (number, flags >> 15, questions) == (77, 1, 1)
    return flags & 15, answers, answer[-4:]


def question(name: str, kind: int) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!HHHHHH", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)


def test_a_name_of_the_demo_leads_to_this_machine_whatever_its_case(server: NameServer) -> None:
    assert ask(server, question("WWW.town.example", A)) == (0, 1, bytes([127, 0, 0, 7]))


@pytest.mark.parametrize("kind", [AAAA, TXT])
def test_it_has_nothing_else(server: NameServer, kind: int) -> None:
    assert ask(server, question("www.town.example", kind))[:2] == (0, 0)


def test_other_names_are_the_systems(server: NameServer) -> None:
    assert ask(server, question("localhost", A)) == (0, 1, bytes([127, 0, 0, 1]))


def test_what_is_no_question_is_not_answered(server: NameServer) -> None:
    broken = (b"", b"\0" * 11, question("www.town.example", A)[:20], b"\xff" * 40)

    assert ask(server, *broken, question("www.town.example", A))[0] == 0
