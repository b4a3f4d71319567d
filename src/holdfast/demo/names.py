"""A nameserver on loopback that knows the demo's names; it resolves others with the system's resolver."""

from __future__ import annotations

import ipaddress
import socket
import socketserver
import struct
import threading
from collections.abc import Mapping

_A, _AAAA, _IN = 1, 28, 1
_NO_ERROR, _SERVER_FAILURE, _NO_SUCH_NAME = 0, 2, 3
_TTL_S = 60


class _Udp(socketserver.ThreadingUDPServer):
    daemon_threads = True
    names: dict[str, str]


class _Question(socketserver.BaseRequestHandler):
    """Answers one datagram; ignores a malformed one."""

    def handle(self) -> None:
        assert isinstance(self.server, _Udp)
        query, line = self.request
        try:
            name, kind, end = _read(query)
        except (IndexError, struct.error, UnicodeDecodeError):
            return
        code, addresses = _addresses(self.server.names, name, kind)
        # An answer, to a question that wished for recursion, from a server that does it.
        head = struct.pack("!HHHHHH", int.from_bytes(query[:2], "big"), 0x8180 | code, 1, len(addresses), 0, 0)
        records = [
            # 0xC00C points to the name in the question.
            struct.pack("!HHHIH", 0xC00C, kind, _IN, _TTL_S, len(packed)) + packed
            for packed in addresses
        ]
        line.sendto(b"".join((head, query[12:end], *records)), self.client_address)


def _read(query: bytes) -> tuple[str, int, int]:
    labels, at = [], 12
    while length := query[at]:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii"))
        at += 1 + length
    (kind,) = struct.unpack_from("!H", query, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def _addresses(names: Mapping[str, str], name: str, kind: int) -> tuple[int, list[bytes]]:
    if name in names:
        return _NO_ERROR, [ipaddress.ip_address(names[name]).packed] if kind == _A else []
    family = {_A: socket.AF_INET, _AAAA: socket.AF_INET6}.get(kind)
    if family is None:
        return _NO_ERROR, []
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as exc:
        return _NO_SUCH_NAME if exc.errno == socket.EAI_NONAME else _SERVER_FAILURE, []
    wanted = {str(row[4][0]) for row in found if row[0] == family}
    return _NO_ERROR, sorted(ipaddress.ip_address(address.partition("%")[0]).packed for address in wanted)


class NameServer:
    def __init__(self, names: Mapping[str, str], *, port: int = 0) -> None:
        self._server = _Udp(("127.0.0.1", port), _Question)
        self._server.names = dict(names)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="demo names", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
