"""The image of the stand-in engine: `docker run`, and zimit inside, with its flags, its files and its manners."""

from __future__ import annotations

import argparse
import atexit
import gzip
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

_KNOWN = (
    "seeds", "name", "workers", "scopeType", "scopeIncludeRx", "scopeExcludeRx", "depth", "pageLimit", "title",
    "description", "warcs", "config", "zim-file", "output", "adminEmail", "lang", "pageExtraDelay", "sizeSoftLimit",
    "timeSoftLimit",
)  # fmt: skip


def run(root: Path, script: dict[str, Any], arguments: list[str]) -> int:
    """Be the docker client: start the container, wait, and hand on its exit code."""
    words = list(arguments)
    labels = [words[at + 1] for at, word in enumerate(words) if word == "--label"]
    volume = words[words.index("-v") + 1].removesuffix(":/output")
    if not Path(volume).is_dir():
        print("docker: Error response from daemon: invalid mount", file=sys.stderr)
        return 125
    ident = os.urandom(6).hex()
    turn = len(list((root / "containers").glob("*.json")))
    steps = script["runs"][min(turn, len(script["runs"]) - 1)]
    pid = os.fork()
    if pid == 0:
        _container(Path(volume), words[words.index("zimit") + 1 :], steps)
    record = {"id": ident, "pid": pid, "labels": labels, "argv": words}
    # Renamed when whole: `docker ps` of another process reads every record.
    unfinished = root / "containers" / f"{turn:03d}-{ident}.unfinished"
    unfinished.write_text(json.dumps(record))
    unfinished.rename(unfinished.with_suffix(".json"))
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _container(output: Path, arguments: list[str], steps: list[dict[str, Any]]) -> NoReturn:
    """Be zimit, to the end."""
    os.setsid()
    try:
        zimit = _Zimit(output, _parse(arguments), mute={"mute": True} in steps)
        atexit.register(zimit.leave)
        signal.signal(signal.SIGTERM, zimit.stopped)
        for step in steps:
            zimit.do(step)
        sys.exit(0)
    except SystemExit as exc:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(exc.code if isinstance(exc.code, int) else 1)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="zimit")
    for name in _KNOWN:
        parser.add_argument(f"--{name}")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--overwrite", action="store_true")
    return parser.parse_args(arguments)


class _Zimit:
    """One crawl inside the container."""

    def __init__(self, output: Path, known: argparse.Namespace, *, mute: bool) -> None:
        self.output, self.known = output, known
        self.temp = output / f".tmp{os.urandom(4).hex()}"
        self.collection = self.temp / "collections" / "crawl-20260101"
        (self.collection / "archive").mkdir(parents=True)
        self.deaf = False
        self.queue: dict[str, Any] | None = None
        keeps = "will keep" if known.keep else "will delete"
        if not mute:
            self.say(f"[zimit::2026-01-01 00:00:00,000] INFO:Output to tempdir: /output/{self.temp.name} - {keeps}")

    def leave(self) -> None:
        """What the real one registers to run at its end."""
        if not self.known.keep:
            shutil.rmtree(self.temp)

    def stopped(self, *_arguments: object) -> None:
        """SIGTERM: save the queue and go, with 3."""
        if self.deaf:
            return
        if self.queue is not None:
            self.yaml(self.queue)
        self.say("SIGINT/SIGTERM received, stopping zimit")
        sys.exit(3)

    def say(self, line: str, to: int = 1) -> None:
        """Write a line; whoever listened may be gone."""
        try:
            os.write(to, line.encode("utf-8", "surrogateescape") + b"\n")
        except BrokenPipeError:
            return

    def do(self, step: dict[str, Any]) -> None:
        """Do one step of the script."""
        for name, value in step.items():
            getattr(self, f"do_{name}")(value)

    def do_mute(self, _value: bool) -> None:
        """Nothing: the directory was not announced."""

    def do_say(self, value: str) -> None:
        self.say(value)

    def do_err(self, value: str) -> None:
        self.say(value, 2)

    def do_event(self, value: dict[str, Any]) -> None:
        self.say(json.dumps({"timestamp": _moment(), "logLevel": "info", "context": "general", **value}))

    def do_stats(self, value: list[int]) -> None:
        crawled, total, pending, failed, *limited = value
        details = {
            "crawled": crawled, "total": total, "pending": pending, "failed": failed,
            "limit": {"max": 0, "hit": bool(limited)}, "pendingPages": [],
        }  # fmt: skip
        self.do_event({"context": "crawlStatus", "message": "Crawl statistics", "details": details})

    def do_times(self, value: dict[str, Any]) -> None:
        for _ in range(value["count"]):
            self.do(value["step"])

    def do_warc(self, value: str) -> None:
        (self.collection / "archive" / value).write_bytes(_warc(f"https://example.org/{value}"))

    def do_yaml(self, value: Any) -> None:
        self.yaml(value)

    def yaml(self, value: Any) -> None:
        """Save the queue; a string is written as it is."""
        folder = self.collection / "crawls"
        folder.mkdir(exist_ok=True)
        text = value if isinstance(value, str) else json.dumps(value)
        (folder / f"crawl-{time.time_ns()}.yaml").write_text(text)

    def do_queue(self, value: dict[str, Any]) -> None:
        self.queue = value

    def do_deaf(self, value: bool) -> None:
        self.deaf = value

    def do_zim(self, value: str) -> None:
        (self.output / value).write_bytes(b"ZIM")

    def do_touch(self, value: str) -> None:
        Path(value).write_text("")

    def do_mode(self, value: str) -> None:
        for path in self.collection.rglob("*"):
            path.chmod(int(value, 8))

    def do_sleep(self, value: float) -> None:
        time.sleep(value)

    def do_await(self, value: str) -> None:
        """Go on when a file is there: when the test has seen what it waits for."""
        deadline = time.monotonic() + 30
        while not Path(value).exists() and time.monotonic() < deadline:
            time.sleep(0.01)

    def do_hang(self, value: float) -> None:
        """Wait for a signal, at most this long: a test that goes wrong leaves nothing behind for ever."""
        deadline = time.monotonic() + value
        while time.monotonic() < deadline:
            time.sleep(0.05)
        sys.exit(99)

    def do_long(self, value: int) -> None:
        """Write one line of this many bytes."""
        piece = b"x" * 65536
        for _ in range(value // len(piece)):
            view = memoryview(piece)
            while view:
                view = view[os.write(1, view) :]
        self.say("")

    def do_bytes(self, value: str) -> None:
        os.write(1, bytes.fromhex(value) + b"\n")

    def do_die(self, value: int) -> None:
        os.kill(os.getpid(), value)

    def do_exit(self, value: int) -> None:
        sys.exit(value)


def _moment() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".000Z"


def _warc(url: str) -> bytes:
    """Return a small WARC file: one HTML response."""
    body = f"<html><title>{url}</title><body>kept</body></html>".encode()
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{os.urandom(16).hex()}>\r\n"
        f"WARC-Target-URI: {url}\r\n"
        f"WARC-Date: {_moment()[:19]}Z\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")
