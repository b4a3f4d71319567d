"""libcurl's multi handle on an event loop: many exchanges at once, no thread, no polling. It knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import select

import pycurl

from holdfast.fetch.curl import Exchange

# Sockets served before the loop gets its turn again.
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
    """Runs many exchanges on one event loop: libcurl says which sockets and moments matter, the loop says when."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_connections: int) -> None:
        self._loop = loop
        self._running: dict[pycurl.Curl, asyncio.Future[tuple[int, str]]] = {}
        self._departures: list[Exchange] = []
        # libcurl changes its mind about a socket twice per request. Telling an epoll of our own and letting the loop
        # watch that one descriptor costs half of what uvloop's add_reader and remove_reader do (64 to 125 us a page).
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

    def start(self, exchange: Exchange) -> asyncio.Future[tuple[int, str]]:
        """Hand the exchange to libcurl; the future gives its code and message. Whoever stops waiting calls `abort`."""
        future: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._running[exchange.curl] = future
        exchange.departures = self._departures
        self._multi.add_handle(exchange.curl)
        return future

    def abort(self, exchange: Exchange) -> None:
        """End the exchange if it still runs, and close its connection."""
        if self._running.pop(exchange.curl, None) is not None:
            self._multi.remove_handle(exchange.curl)

    def close(self) -> None:
        """Abort what runs and close every connection."""
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
            if self._departures:
                self._see_off()
        if running < len(self._running):
            self._reap()

    def _on_timer(self, wait_ms: int) -> None:
        """Note when libcurl wants to be woken.

        A timer that is set for earlier is left alone and armed anew when it rings: every request moves the moment a
        little later, and cancelling each time costs more than one idle ring.
        """
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
        if self._departures:
            self._see_off()
        if running < len(self._running):
            self._reap()

    def _see_off(self) -> None:
        for exchange in self._departures:
            exchange.has_left()
        self._departures.clear()

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
