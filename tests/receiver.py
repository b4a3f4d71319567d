"""A receiver of webhooks on a real socket that does with each message what a test wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Event, Thread
from typing import Any, NamedTuple

from tests.patience import deadline


class Received(NamedTuple):
    """One message as it came."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Answer(NamedTuple):
    """What a receiver says."""

    status: int = 204
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class Receiver:
    """Keeps what arrives; `answers` by path decides what is said, 204 otherwise. `hang` paths never answer."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received: list[Received] = []
        self.answers: dict[str, Callable[[Received], Answer]] = {}
        self.hangs: set[str] = set()
        self.released = Event()
        self._changed = Condition()

    def url(self, path: str = "/hook") -> str:
        """Return where messages are sent."""
        return f"http://127.0.0.1:{self.port}{path}"

    def take(self, message: Received) -> Answer:
        """Keep a message and return what to say to it."""
        with self._changed:
            self.received.append(message)
            self._changed.notify_all()
        if message.path in self.hangs:
            self.released.wait(deadline(60))
        answer = self.answers.get(message.path)
        return Answer() if answer is None else answer(message)

    def wait_for(self, count: int, path: str | None = None) -> list[Received]:
        """Return the messages of a path once there are so many."""

        def there() -> list[Received]:
            return [one for one in self.received if path is None or one.path == path]

        with self._changed:
            assert self._changed.wait_for(lambda: len(there()) >= count, deadline(20)), there()
        return there()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Listen on a port that the kernel chose."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = receiver.take(Received(self.path, headers, self.rfile.read(length)))
            self.send_response(answer.status)
            for name, value in answer.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver = Receiver(server.server_address[1])
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        thread.join()
        server.server_close()
