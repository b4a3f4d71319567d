"""The child: same answer as in process, killed when it overruns, replaced when it dies, trusted with nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.parse import ParseChild, ParseProblem, parse_page
from holdfast.parse.child import pack_reply, unpack_reply
from holdfast.parse.document import ParsedDocument
from holdfast.types import Link, ParsedPage
from tests import patience

_GOLDEN = Path(__file__).parents[2] / "golden" / "parse"
_STUCK = b"<a href=/salvaged>" + b"<div>" * 60_000


@pytest.fixture(scope="module")
def child() -> Iterator[ParseChild]:
    with ParseChild(deadline_s=0.5) as child:
        yield child


def _ask(child: ParseChild, body: bytes) -> ParsedPage:
    return child.parse(body, url="http://x.example/", media_type="text/html", charset=None)


@pytest.mark.parametrize("name", sorted(path.name for path in _GOLDEN.glob("*.html")))
def test_the_child_gives_the_same_answer(child: ParseChild, name: str) -> None:
    body = (_GOLDEN / name).read_bytes()
    asked = {"url": "http://x.example/", "media_type": "text/html", "charset": None}

    page = child.parse(body, **asked, x_robots=("noindex",), want_text=True)  # type: ignore[arg-type]

    assert page == parse_page(body, **asked, x_robots=("noindex",), want_text=True)  # type: ignore[arg-type]


def test_an_overrun_is_killed_its_links_salvaged_and_the_child_replaced(child: ParseChild) -> None:
    _ask(child, b"warm")
    first = child.pid

    started = time.monotonic()
    page = _ask(child, _STUCK)

    assert time.monotonic() - started < patience.allowed(3.0)
    assert page.problems == (ParseProblem.PARSE_TIMEOUT, ParseProblem.LINKS_SCANNED)
    assert page.links == (Link("/salvaged", "scan"),)
    assert first is not None
    assert not Path(f"/proc/{first}").exists()
    assert _ask(child, b"<title>next</title>").title == "next"
    assert child.pid != first


def test_a_child_that_was_killed_between_pages_is_replaced_unseen(child: ParseChild) -> None:
    _ask(child, b"warm")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert _ask(child, b"<title>next</title>").title == "next"


_READY = "import sys; out = sys.stdout.buffer; out.write(bytes(4)); out.flush(); sys.stdin.buffer.read(8); "


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise SystemExit", ParseProblem.PARSE_CRASHED),
        ("print('hello')", ParseProblem.PARSE_CRASHED),
        (_READY, ParseProblem.PARSE_CRASHED),
        (_READY + "import os; os.kill(os.getpid(), 11)", ParseProblem.PARSE_CRASHED),
        (_READY + "out.write(bytes((0, 0, 0, 2)) + b'[]')", ParseProblem.PARSE_CRASHED),
        (_READY + "out.write(bytes((255, 255, 255, 255)) + b'[]')", ParseProblem.PARSE_CRASHED),
        (_READY + "sys.stdin.buffer.read()", ParseProblem.PARSE_TIMEOUT),
        (
            _READY + "out.write(bytes((0, 0, 0, 9)) + b'[]'); out.flush(); sys.stdin.buffer.read()",
            ParseProblem.PARSE_TIMEOUT,
        ),
    ],
)
def test_a_child_that_fails_over_a_page_is_noted(code: str, problem: ParseProblem) -> None:
    with ParseChild(deadline_s=0.2, command=[sys.executable, "-c", code]) as child:
        page = _ask(child, b"<a href=/salvaged>")

        assert child.pid is None
    assert page == ParsedPage(links=(Link("/salvaged", "scan"),), problems=(problem, ParseProblem.LINKS_SCANNED))


def test_memory_has_a_limit() -> None:
    body = b"<a href=/kept>" + b"".join(b"<b id=%d><p>" % i for i in range(3000))

    with ParseChild(deadline_s=patience.deadline(5.0), memory_bytes=192 * 1024 * 1024) as child:
        page = _ask(child, body)

    assert {ParseProblem.PARSE_FAILED, ParseProblem.PARSE_CRASHED} & set(page.problems)
    assert page.links == (Link("/kept", "scan"),)


def test_the_child_knows_no_secrets(child: ParseChild) -> None:
    _ask(child, b"warm")

    environment = Path(f"/proc/{child.pid}/environ").read_bytes().split(b"\0")
    assert {line.partition(b"=")[0] for line in environment if line} == {b"PATH", b"LANG"}


def test_the_child_has_limits(child: ParseChild) -> None:
    _ask(child, b"warm")

    limits = Path(f"/proc/{child.pid}/limits").read_text()
    values = {line[:26].strip(): line[26:47].strip() for line in limits.splitlines()}
    assert values["Max address space"] == str(512 * 1024 * 1024)
    assert values["Max file size"] == values["Max core file size"] == "0"
    assert int(values["Max cpu time"]) < 60


def test_closing_leaves_no_process_and_can_be_repeated() -> None:
    child = ParseChild()
    _ask(child, b"warm")
    pid = child.pid

    child.close()
    child.close()

    assert child.pid is None
    assert not Path(f"/proc/{pid}").exists()


def test_threads_take_turns(child: ParseChild) -> None:
    titles: list[str | None] = []

    def ask(number: int) -> None:
        titles.append(_ask(child, b"<title>%d</title>" % number).title)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(title or "" for title in titles) == [str(number) for number in range(8)]


_PAGE = ParsedPage(
    title="t\ud800",
    description="d",
    language="en",
    charset="utf-8",
    canonical="/c",
    base="/",
    text="é\n日",
    links=(Link("/a", "a"),),
    resources=(Link("b", "img"),),
    links_over=1,
    resources_over=2,
    nofollow=True,
    noindex=True,
    problems=(ParseProblem.BODY_CUT,),
)
_DOCUMENT = ParsedDocument(
    title="t\ud800",
    description="d",
    language="en",
    canonical="/c",
    base="/",
    visible="é\n日\faround",
    headings=("h",),
    terms=("term",),
    hrefs=(("/a", "words", "beside"),),
    noindex=True,
    author="Ann",
    published_at=datetime(2024, 1, 2, tzinfo=UTC),
    modified_at=datetime(2024, 1, 3, 4, 5, 6, tzinfo=UTC),
    keywords=("k",),
    word_count=3,
    page_type="article",
    details={"og:type": "article"},
    problems=(ParseProblem.BODY_CUT,),
)


@pytest.mark.parametrize("parsed", [_PAGE, _DOCUMENT])
def test_every_field_survives_the_wire(parsed: ParsedPage | ParsedDocument) -> None:
    unset = [one.name for one in fields(parsed) if getattr(parsed, one.name) == getattr(type(parsed)(), one.name)]

    assert not unset, "this test compares all fields"
    assert unpack_reply(type(parsed), pack_reply(parsed)[4:]) == parsed


@pytest.mark.parametrize("reply", [b"", b"[]", b"{}", b"null", b'{"links": 3}', b"\xff"])
def test_a_false_reply_is_refused(reply: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        unpack_reply(ParsedPage, reply)
