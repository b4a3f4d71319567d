"""The website of an invented town, generated from texts with variants for its four states.

A line that starts with `[2-3]` appears in states 2 and 3 only; `{{a||b||c||d}}` is one text for each state, the
last one for all later states; `%list /news/ 4` is a list of the latest dated pages below a path.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from email.utils import format_datetime
from html import escape
from http import HTTPStatus
from importlib import resources
from string import Template
from typing import Any

from holdfast.demo.answers import SiteAnswer, SiteContent, moved, refused, sitemap, stored
from holdfast.demo.documents import pdf_of
from holdfast.demo.marsh import files_below, page_path, read_files
from holdfast.demo.pictures import harbour_picture
from holdfast.values import dataclass

_BUNDLE = resources.files(__package__) / "town_site"
_LAYOUT = {item.name: item.read_text("utf-8") for item in (_BUNDLE / "layout").iterdir()}
"""What stands around every page: templates, and the words of both languages."""
_TOWN: dict[str, Any] = tomllib.loads(_LAYOUT["town.toml"])
_STAFF = "/staff/"
_FEED = "/news/feed.xml"
# The first day of each state: pages with a later date are not published yet.
_STATE_DAYS = (date(2023, 5, 16), date(2024, 6, 11), date(2025, 9, 23), date(2026, 10, 20))
# Older than what a poll of sitemaps takes for news: pages are left to crawls.
_LISTED_DAYS = (date(2023, 1, 2), date(2024, 3, 1), date(2025, 7, 1), date(2026, 9, 1))
LAST_STATE = len(_STATE_DAYS)

_ONLY = re.compile(r"\[([0-9,-]+)\] ?")
_VARIANTS = re.compile(r"\{\{([^{}]*+)\}\}")
_LIST = re.compile(r"%list (\S+) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TownPage:
    """One page as defined by its file, in one state."""

    path: str
    title: str
    summary: str
    lines: tuple[str, ...]
    day: date | None
    """The publication date, for news and minutes."""
    last_state: int
    """The last state that has the page; later ones answer 410."""
    picture: tuple[str, str] | None
    """File and description."""
    other: str | None
    """The same page in the other language."""
    print_path: str | None

    @property
    def language(self) -> str:
        """`en` or `fr`."""
        return "fr" if self.path.startswith("/fr/") else "en"


def town_content(state: int, *, origin: str, marsh_url: str) -> SiteContent:
    """Return the town's website in one of its states, 1 to LAST_STATE."""
    files = files_below(_BUNDLE / "pages")
    defined = sorted(
        (_page(page_path(path), item.read_text("utf-8"), state) for path, item in files), key=lambda page: page.path
    )
    published = [page for page in defined if page.day is None or page.day <= _STATE_DAYS[state - 1]]
    pages = {page.path: page for page in published if state <= page.last_state}
    answers: dict[str, SiteAnswer] = read_files(_BUNDLE / "files", origin)
    for page in pages.values():
        body = "\n".join(_body(page, pages)).replace("{marsh}", marsh_url)
        answers[page.path] = stored(_document(page, body, pages).encode(), ".html")
        if page.print_path is not None:
            answers[page.print_path] = stored(
                _filled("print.html", page.language, title=escape(_title(page)), path=page.path, body=body).encode(),
                ".html",
            )
    for page in published:
        if page.path not in pages:
            answers[page.path] = refused(HTTPStatus.GONE, _refusal(page.language, "gone"))
    answers |= {path: stored(body, ".pdf") for path, body in _documents(state)}
    answers["/img/harbour-camera.png"] = stored(harbour_picture(state), ".png")
    answers |= {old: moved(new) for old, new in _TOWN["redirects"].items()}
    answers["/sitemap.xml"] = stored(_sitemap(answers, pages, origin, state), ".xml")
    answers[_FEED] = stored(_feed(pages, origin), ".rss")
    return SiteContent(answers=answers, missing=refused(HTTPStatus.NOT_FOUND, _refusal("en", "missing")))


def _page(path: str, text: str, state: int) -> TownPage:
    fields, lines = _parts(text, state)
    picture = tuple(fields["picture"].split(" | ", 1)) if "picture" in fields else None
    return TownPage(
        path=path,
        title=fields["title"],
        summary=fields["summary"],
        lines=lines,
        day=date.fromisoformat(fields["date"]) if "date" in fields else None,
        last_state=int(fields.get("until", LAST_STATE)),
        picture=(picture[0], picture[1]) if picture else None,
        other=fields.get("other"),
        print_path=fields.get("print"),
    )


def _parts(text: str, state: int) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the fields before the first empty line, and the lines after it that apply in a state."""
    head, _, body = text.partition("\n\n")
    fields = dict(line.split(": ", 1) for line in _in_state(head, state))
    return fields, tuple(_in_state(body, state))


def _in_state(text: str, state: int) -> Iterator[str]:
    for line in text.splitlines():
        only = _ONLY.match(line)
        if only is None or _holds(only[1], state):
            rest = line if only is None else line[only.end() :]
            yield _VARIANTS.sub(lambda found: _variant(found[1], state), rest)


def _holds(spans: str, state: int) -> bool:
    bounds = (span.partition("-") for span in spans.split(","))
    return any(int(first) <= state <= int(last or first) for first, _, last in bounds)


def _variant(alternatives: str, state: int) -> str:
    every = alternatives.split("||")
    return every[min(state, len(every)) - 1]


def _body(page: TownPage, pages: dict[str, TownPage]) -> Iterator[str]:
    if page.day is not None:
        yield f'<p class="date">{_time(page.day, page.language)}</p>'
    for line in page.lines:
        wanted = _LIST.fullmatch(line)
        if wanted is None:
            yield line
        else:
            yield '<ul class="list">'
            for one in _dated(pages, wanted[1])[: int(wanted[2])]:
                assert one.day is not None
                link = f'<a href="{one.path}">{escape(one.title)}</a><br><span>{escape(one.summary)}</span>'
                yield f"<li>{_time(one.day, page.language)}<div>{link}</div></li>"
            yield "</ul>"


def _dated(pages: dict[str, TownPage], below: str) -> list[TownPage]:
    """Return the dated pages below a path, newest first."""
    found = [page for page in pages.values() if page.path.startswith(below) and page.day is not None]
    return sorted(found, key=lambda page: (page.day or date.min, page.path), reverse=True)


def _time(day: date, language: str) -> str:
    month = _TOWN[language]["months"][day.month - 1]
    number = "1er" if language == "fr" and day.day == 1 else str(day.day)
    return f'<time datetime="{day:%Y-%m-%d}">{number} {month} {day.year}</time>'


def _document(page: TownPage, body: str, pages: dict[str, TownPage]) -> str:
    words, language = _TOWN[page.language], page.language
    other = page.other if page.other in pages else None
    other_language = "en" if language == "fr" else "fr"
    head = [
        f"<title>{escape(_title(page))}</title>",
        f'<meta name="description" content="{escape(page.summary)}">',
        f'<link rel="canonical" href="{page.path}">',
        f'<link rel="alternate" hreflang="{other_language}" href="{other}">' if other else "",
        f'<link rel="alternate" type="application/rss+xml" title="News" href="{_FEED}">' if language == "en" else "",
        f'<meta property="article:published_time" content="{page.day:%Y-%m-%d}">' if page.day else "",
        f'<meta property="og:type" content="{"article" if page.day else "website"}">',
        '<link rel="icon" href="/img/mark.svg" type="image/svg+xml">',
        '<link rel="stylesheet" href="/style.css">',
    ]
    navigation = "".join(
        f'<a href="{path}"{" aria-current=page" if path == page.path else ""}>{label}</a>'
        for path, label in words["menu"].items()
    )
    hero = f'<img class="hero" src="/img/{page.picture[0]}" alt="{escape(page.picture[1])}">' if page.picture else ""
    printing = f'<p><a href="{page.print_path}">{words["print"]}</a></p>' if page.print_path else ""
    return _filled(
        "page.html",
        language,
        head="\n".join(filter(None, head)),
        switch=other or words["other_home"],
        other_language=other_language,
        navigation=navigation,
        hero=hero,
        body=body,
        printing=printing,
    )


def _filled(template: str, language: str, **values: str) -> str:
    return Template(_LAYOUT[template]).substitute(_TOWN[language], language=language, **values)


def _title(page: TownPage) -> str:
    town = _TOWN[page.language]["town"]
    return page.title if page.title == town else f"{page.title} · {town}"


def _refusal(language: str, why: str) -> str:
    return _filled("refusal.html", language, reason=_TOWN[language][why])


def _documents(state: int) -> Iterator[tuple[str, bytes]]:
    for path, item in files_below(_BUNDLE / "documents"):
        below, _, name = path.rpartition("/")
        fields, lines = _parts(item.read_text("utf-8"), state)
        document = pdf_of(fields["title"], fields["language"], lines)
        yield f"{below}/documents/{name.removesuffix('.txt')}.pdf", document


def _sitemap(answers: dict[str, SiteAnswer], pages: dict[str, TownPage], origin: str, state: int) -> bytes:
    public = (path for path, one in answers.items() if one.is_page and not path.startswith(_STAFF))
    days = {path: pages[path].day if path in pages else None for path in sorted(public)}
    return sitemap({f"{origin}{path}": f"{day or _LISTED_DAYS[state - 1]:%Y-%m-%d}" for path, day in days.items()})


def _feed(pages: dict[str, TownPage], origin: str) -> bytes:
    items = "".join(
        f"<item><title>{escape(page.title)}</title><link>{origin}{page.path}</link>"
        f"<guid>{origin}{page.path}</guid><description>{escape(page.summary)}</description>"
        f"<pubDate>{_noon(page.day)}</pubDate></item>\n"
        for page in _dated(pages, "/news/")
        if page.day is not None
    )
    channel = f"<title>{_TOWN['feed_title']}</title><link>{origin}/news/</link><description>News</description>"
    feed = f'<rss version="2.0"><channel>{channel}\n{items}</channel></rss>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{feed}\n'.encode()


def _noon(day: date) -> str:
    return format_datetime(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))
