"""Typed wrapper of reusable libcurl easy handles. Follows, decodes, retries and resolves nothing, does not read
the environment, and creates sockets only with the guard's permission.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from contextlib import suppress
from typing import NamedTuple

import pycurl

from holdfast.clock import Clock
from holdfast.fetch.body import BodySink
from holdfast.fetch.endings import TransferEnding
from holdfast.fetch.guard import AddressGuard, FetchTarget
from holdfast.fetch.headers import HeaderSet

PEER_FAILED_VERIFICATION: int = pycurl.E_PEER_FAILED_VERIFICATION

# Enough for a median page in one call; libcurl shares the buffer between the transfers of a multi handle.
_READ_BUFFER_BYTES = 128 * 1024


class EasyOptions(NamedTuple):
    ca_file: str
    connect_timeout_s: float
    min_bytes_per_s: int
    rate_window_s: int


class _Descriptor:
    """A socket passed to libcurl, which duplicates it; ours is closed when this object is garbage-collected."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


# libcurl checks for dead connections at most once a second and would send the request on one that has ended.
class KeptSockets:
    """Maps connections to sockets, so that one that died while idle is noticed before it is used."""

    __slots__ = ("_by_end", "_by_fd")

    def __init__(self) -> None:
        self._by_end: dict[tuple[int, str, int], int] = {}
        self._by_fd: dict[int, tuple[int, str, int]] = {}

    def opened(self, fd: int, local_port: int, peer: str, peer_port: int) -> None:
        """Record a new connection; the previous one with this descriptor is gone."""
        self._by_end.pop(self._by_fd.pop(fd, (0, "", 0)), None)
        self._by_fd[fd] = local_port, peer, peer_port
        self._by_end[local_port, peer, peer_port] = fd

    def shut_down(self, local_port: int, peer: str, peer_port: int) -> None:
        """Shut down an untrusted kept-alive connection: the next request finds it dead and opens a new one."""
        fd = self._by_end.get((local_port, peer, peer_port))
        if fd is not None:
            with suppress(OSError), socket.socket(fileno=os.dup(fd)) as line:
                line.shutdown(socket.SHUT_RDWR)

    def is_quiet(self, local_port: int, peer: str, peer_port: int) -> bool:
        """Return whether a kept-alive connection is still open and no unexpected data has arrived on it."""
        fd = self._by_end.get((local_port, peer, peer_port))
        if fd is None:
            return True
        look = select.poll()
        look.register(fd, select.POLLIN)
        return not look.poll(0)


class Transfer:
    __slots__ = (
        "_clock",
        "_connect_ms",
        "_content",
        "_fresh",
        "_fresh_fd",
        "_guard",
        "_is_repeat",
        "_kept",
        "_timeout_ms",
        "_verify",
        "curl",
        "headers",
        "is_stale",
        "lines",
        "peer",
        "refused",
        "sending",
        "sent_at",
        "sink",
        "target",
    )

    target: FetchTarget
    headers: HeaderSet

    def __init__(
        self, options: EasyOptions, guard: AddressGuard, clock: Clock, kept: KeptSockets, sink: BodySink
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._kept = kept
        self._fresh = False
        self._fresh_fd: int | None = None
        self._timeout_ms = self._connect_ms = 0
        self._verify = True
        self._content: bytes | None = None
        self.headers = HeaderSet([], b"")
        self.sink = sink
        self.lines: list[bytes] = []
        """Head lines as received, interim responses included; libcurl ends the transfer at 300 KiB of them."""
        self.peer = ""
        self.refused = False
        """True if the guard forbade an address that libcurl wanted to dial."""
        self.sent_at: float | None = None
        """When the request had left at the latest, by the monotonic clock; None if it did not."""
        self.sending: list[Transfer] = []
        """Where a transfer puts itself when its request is about to leave."""
        self._is_repeat = False
        self.is_stale = False
        """True if nothing was sent because the connection that libcurl took up again had died."""
        self.curl = _easy(options)
        self.curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)
        self.curl.setopt(pycurl.WRITEFUNCTION, sink.write)
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.curl.setopt(pycurl.SOCKOPTFUNCTION, self._socket_made)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._before_request)

    def ask(self, target: FetchTarget, headers: HeaderSet, content: bytes | None = None) -> None:
        self.target = target
        self.curl.setopt(pycurl.URL, target.origin.url)
        self.curl.setopt(pycurl.REQUEST_TARGET, target.path)
        if headers is not self.headers:
            self.curl.setopt(pycurl.HTTPHEADER, headers.for_libcurl)
            self.headers = headers
        if content is not None:
            self.curl.setopt(pycurl.POSTFIELDS, content)
            self._content = content

    def request_head(self) -> bytes:
        """Return the request head as libcurl writes it: it adds only the Host from the URL, and the Content-Length
        of a
        POST, which is omitted here.
        """
        origin, path = self.target
        method = b"GET" if self._content is None else b"POST"
        return b"%b %b HTTP/1.1\r\n%b%b" % (method, path.encode("ascii"), origin.host_line, self.headers.block)

    def limit(self, timeout_s: float, max_body_bytes: int, *, connect_s: float) -> None:
        """Set the timeout from now on, the body limit, and the timeout before the request is sent."""
        self.sink.begin(max_body_bytes)
        connect_ms = max(1, int(connect_s * 1000))
        if connect_ms != self._connect_ms:
            self.curl.setopt(pycurl.CONNECTTIMEOUT_MS, connect_ms)
            self._connect_ms = connect_ms
        timeout_ms = max(1, int(timeout_s * 1000))
        if timeout_ms != self._timeout_ms:
            self.curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)
            self._timeout_ms = timeout_ms

    def dial(self, address: str, *, verify: bool, fresh: bool = False) -> None:
        """Set the address to connect to (libcurl never resolves names), and whether to verify the certificate."""
        port = self.target.origin.port
        self.curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:{port}" if ":" in address else f"::{address}:{port}"])
        if verify != self._verify:
            self.curl.setopt(pycurl.SSL_VERIFYPEER, int(verify))
            self.curl.setopt(pycurl.SSL_VERIFYHOST, 2 if verify else 0)
            self._verify = verify
        if fresh != self._fresh:
            self.curl.setopt(pycurl.FRESH_CONNECT, int(fresh))
            self._fresh = fresh
        self.sent_at = self._fresh_fd = None
        self.refused = self._is_repeat = self.is_stale = False
        self.lines.clear()

    @property
    def is_fresh(self) -> bool:
        return self._fresh_fd is not None

    def reset(self) -> None:
        self.sink.drop()
        self.lines.clear()
        if self._content is not None:
            # Reset the handle to GET, and drop the content.
            self.curl.setopt(pycurl.HTTPGET, 1)
            self._content = None

    def ending(self, code: int, message: str) -> TransferEnding:
        if self._is_repeat:
            code, message = pycurl.E_GOT_NOTHING, "the kept connection broke before an answer came"
        return TransferEnding(code, message, self.lines, self.sink.overflowed, self.refused)

    def shut_connection(self) -> None:
        info = self.curl.getinfo
        self._kept.shut_down(info(pycurl.LOCAL_PORT), self.peer, info(pycurl.PRIMARY_PORT))

    def waited_s(self) -> float:
        """Return the seconds from sending the request to the first byte of the response."""
        # Use the difference: libcurl counts from when it started the transfer, which may be long after we handed it
        # over; politeness must not rely on that.
        waited: float = self.curl.getinfo(pycurl.STARTTRANSFER_TIME) - self.curl.getinfo(pycurl.PRETRANSFER_TIME)
        return max(0.0, waited)

    def _open_socket(self, _purpose: int, address: pycurl.CurlSockAddr) -> _Descriptor | int:
        # No address that libcurl uses can bypass the guard here.
        if self.sent_at is not None:
            self._is_repeat = True
            return pycurl.SOCKET_BAD
        host = address.addr[0]
        if not isinstance(host, str) or not self._guard.judge(host):
            self.refused = True
            return pycurl.SOCKET_BAD
        try:
            return _Descriptor(socket.socket(address.family, address.socktype, address.protocol).detach())
        except OSError:  # no descriptors left, or a family that this machine does not speak
            return pycurl.SOCKET_BAD

    def _socket_made(self, fd: int, _purpose: int) -> int:
        # libcurl's duplicate is inheritable, as the sockets that Python makes are not.
        os.set_inheritable(fd, False)
        self._fresh_fd = fd
        return pycurl.SOCKOPT_OK

    def _before_request(self, peer: str, _local: str, peer_port: int, local_port: int) -> int:
        # libcurl repeats a request when a reused connection dies; the site would see two requests without a pause, so
        # callers repeat it at their pace.
        if self.sent_at is not None:
            self._is_repeat = True
            return pycurl.PREREQFUNC_ABORT
        if self._fresh_fd is not None:
            self._kept.opened(self._fresh_fd, local_port, peer, peer_port)
        elif not self._kept.is_quiet(local_port, peer, peer_port):
            self.is_stale = True
            return pycurl.PREREQFUNC_ABORT
        self.sent_at = self._clock.monotonic()
        self.sending.append(self)
        self.peer = peer
        return pycurl.PREREQFUNC_OK

    def note_sent(self) -> None:
        """Record when libcurl has sent the request: on a busy machine that may be well after its callback."""
        self.sent_at = self._clock.monotonic()


def _easy(options: EasyOptions) -> pycurl.Curl:
    curl = pycurl.Curl()
    for option, value in (
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1),
        # Any output would count as an HTTP/0.9 response, even of a port with another protocol.
        (pycurl.HTTP09_ALLOWED, 0),
        # Archive the bytes as sent over the wire.
        (pycurl.HTTP_TRANSFER_DECODING, 0),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.FOLLOWLOCATION, 0),
        # libcurl reads http_proxy from the environment: a crawl would connect to the proxy and to no site.
        (pycurl.PROXY, ""),
        (pycurl.NOPROXY, "*"),
        (pycurl.NETRC, 0),
        (pycurl.NOSIGNAL, 1),
        (pycurl.DNS_CACHE_TIMEOUT, 0),
        (pycurl.CAINFO, options.ca_file),
        (pycurl.SSL_VERIFYPEER, 1),
        (pycurl.SSL_VERIFYHOST, 2),
        (pycurl.BUFFERSIZE, _READ_BUFFER_BYTES),
        (pycurl.LOW_SPEED_LIMIT, options.min_bytes_per_s),
        (pycurl.LOW_SPEED_TIME, options.rate_window_s),
    ):
        curl.setopt(option, value)
    return curl


# Sockets served before the event loop continues.
_MAX_EVENTS = 64
_EVENTS = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_IN_OR_OUT = select.EPOLLIN | select.EPOLLOUT
_ACTIONS = {
    select.EPOLLIN: pycurl.CSELECT_IN,
    select.EPOLLOUT: pycurl.CSELECT_OUT,
    _IN_OR_OUT: pycurl.CSELECT_IN | pycurl.CSELECT_OUT,
}


class Multi:
    def __init__(self, loop: asyncio.AbstractEventLoop, max_connections: int) -> None:
        self._loop = loop
        self._running: dict[pycurl.Curl, asyncio.Future[tuple[int, str]]] = {}
        self._sending: list[Transfer] = []
        # libcurl changes a socket's events twice per request. Registering them in our own epoll, which the loop
        # watches, costs half of uvloop's add_reader and remove_reader (64 to 125 us a page).
        self._poll = select.epoll()
        self._watched: set[int] = set()
        loop.add_reader(self._poll.fileno(), self._on_ready)
        self._due: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._kick: asyncio.Handle | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, max_connections)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, max_connections)

    def start(self, transfer: Transfer) -> asyncio.Future[tuple[int, str]]:
        """Start the transfer; the future returns its code and message. A caller that gives up must call `abort`."""
        future: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._running[transfer.curl] = future
        transfer.sending = self._sending
        self._multi.add_handle(transfer.curl)
        return future

    def abort(self, transfer: Transfer) -> None:
        if self._running.pop(transfer.curl, None) is not None:
            self._multi.remove_handle(transfer.curl)

    def close(self) -> None:
        for curl, future in list(self._running.items()):
            del self._running[curl]
            self._multi.remove_handle(curl)
            future.cancel()
        for handle in (self._timer, self._kick):
            if handle is not None:
                handle.cancel()
        self._multi.close()
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()

    def _on_socket(self, what: int, fd: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            if fd in self._watched:
                self._watched.remove(fd)
                self._poll.unregister(fd)
            return
        events = _EVENTS[what]
        if fd in self._watched:
            self._poll.modify(fd, events)
        else:
            self._watched.add(fd)
            self._poll.register(fd, events)

    def _on_ready(self) -> None:
        act = self._multi.socket_action
        running = len(self._running)
        for fd, events in self._poll.poll(0, _MAX_EVENTS):
            _, running = act(fd, _ACTIONS[events & _IN_OR_OUT] if events & _IN_OR_OUT else pycurl.CSELECT_ERR)
            if self._sending:
                self._note_sent()
        if running < len(self._running):
            self._reap()

    def _on_timer(self, wait_ms: int) -> None:
        # Leave an earlier timer and rearm it when it fires: every request moves the time a little later, and cancelling
        # costs more than one idle call.
        if wait_ms < 0:
            self._due = None
        elif wait_ms == 0:
            self._due = None
            if self._kick is None:
                self._kick = self._loop.call_soon(self._on_kick)
        else:
            self._due = self._loop.time() + wait_ms / 1000
            self._arm(self._due)

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._on_due)

    def _on_kick(self) -> None:
        self._kick = None
        self._wake()

    def _on_due(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due > self._loop.time():
            self._arm(self._due)
            return
        self._due = None
        self._wake()

    def _wake(self) -> None:
        _, running = self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        if self._sending:
            self._note_sent()
        if running < len(self._running):
            self._reap()

    def _note_sent(self) -> None:
        for transfer in self._sending:
            transfer.note_sent()
        self._sending.clear()

    def _reap(self) -> None:
        left = 1
        while left:
            left, whole, broken = self._multi.info_read()
            for curl in whole:
                self._end(curl, (pycurl.E_OK, ""))
            for curl, code, message in broken:
                self._end(curl, (code, message))

    def _end(self, curl: pycurl.Curl, ending: tuple[int, str]) -> None:
        self._multi.remove_handle(curl)
        future = self._running.pop(curl, None)
        if future is not None and not future.done():
            future.set_result(ending)
