"""A client that sends a request and returns whatever bytes come, judging nothing."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import NamedTuple

from tests.site import Site


class Answer(NamedTuple):
    """What came back, and how it ended."""

    data: bytes
    ending: str
    """`closed`, `reset`, `silent` (nothing more within the patience) or `enough` (the limit was reached)."""

    @property
    def status(self) -> int:
        return int(self.data.split(b" ", 2)[1])

    @property
    def head(self) -> bytes:
        return self.data.split(b"\r\n\r\n", 1)[0]

    @property
    def body(self) -> bytes:
        return self.data.split(b"\r\n\r\n", 1)[1]

    def header(self, name: str) -> str | None:
        """Return the first header of this name."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name.lower().encode():
                return value.strip().decode("latin-1")
        return None


def ask(
    site: Site,
    path: str,
    *,
    host: int = 0,
    headers: str = "",
    limit: int = 4_000_000,
    first_s: float = 10.0,
    patience_s: float = 10.0,
) -> Answer:
    """Ask for a page on a connection of its own; wait `first_s` for its first byte and `patience_s` for any other."""
    with socket.create_connection((site.hosts[host], site.port), timeout=10.0) as sock:
        name = f"{site.hosts[host]}:{site.port}"
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n{headers}\r\n".encode())
        data = bytearray()
        sock.settimeout(first_s)
        try:
            while len(data) < limit:
                piece = sock.recv(65_536)
                if not piece:
                    return Answer(bytes(data), "closed")
                data += piece
                sock.settimeout(patience_s)
        except ConnectionResetError:
            return Answer(bytes(data), "reset")
        except TimeoutError:
            return Answer(bytes(data), "silent")
        finally:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return Answer(bytes(data), "enough")
