"""What a page says about itself is printed, never obeyed: no escape sequence of a site reaches the terminal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.cli.formatting import one_line, text
from holdfast.db.models import Source
from holdfast.db.models.findings import SignalLink, SignalPage, SignalWord
from holdfast.db.models.frontier import Domain, Page
from holdfast.urls import parse
from tests.archive import Shot, build_archive
from tests.typed import Typist

_ERASE = "\x1b[2J\x9b31m\u202e"
_TITLE = f"Tide{_ERASE} tables"
_URL = "https://example.org/tides"


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    """An archive with one capture and one page without a body, both of a site that writes escape sequences."""
    shot = Shot(url=_URL, body=f"<title>{_TITLE}</title><p>high water {_ERASE}</p>")
    archive = build_archive(tmp_path, [shot])
    with closing(archive.database), archive.database.write() as session:
        now, url = archive.clock.now(), parse(_URL)
        domain = Domain(name=url.domain, created_at=now)
        session.add(domain)
        session.flush()
        page = Page(domain_id=domain.id, url_hash=url.hash64, url=url.fetch, created_at=now)
        session.add(page)
        session.flush()
        source_id = session.query(Source.id).scalar()
        told = {"title": _TITLE, "description": _ERASE, "language": "en"}
        session.add(SignalPage(page_id=page.id, source_id=source_id, execution_id=1, fetched_at=now, **told))
        session.add(SignalWord(word="tide", page_id=page.id, count=1))
        session.add(SignalLink(page_id=page.id, to_hash=1, from_hash=2, to_url=f"https://example.org/{_ERASE}"))
    return Typist(tmp_path, capsys)


@pytest.mark.parametrize(
    "line",
    ["snapshot show 4194305", "snapshot cat 4194305 --headers", "search high", "page search tide", f"page show {_URL}"],
)
def test_no_command_prints_what_a_terminal_would_obey(typed: Typist, line: str) -> None:
    ended = typed(line)

    assert ended.code == 0
    assert not set(ended.out + ended.err) & set("\x1b\x9b\u202e")


def test_a_host_is_found_however_it_is_typed(typed: Typist) -> None:
    assert "1 page" in typed("page search tide --domain EXAMPLE.org.").out
    assert "0 pages" in typed("page search tide --domain other.example").out


def test_spaces_stay_spaces_and_what_a_terminal_obeys_is_replaced() -> None:
    assert text("no\u00a0break\x1b") == "no break\ufffd"
    assert one_line("two\nlines\x85\x1b[2J") == "two lines \ufffd[2J"
