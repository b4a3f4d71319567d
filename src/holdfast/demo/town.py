"""The website of an invented town, generated from texts with variants for its four states.

A line that starts with `[2-3]` appears in states 2 and 3 only; `{{a||b||c||d}}` is one text for each state, the
last one for all later states; `%list /news/ 4` is a list of the latest dated pages below a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from email.utils import format_datetime
from html import escape
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable

from holdfast.demo.answers import SiteAnswer, SiteContent, moved, refused, sitemap, stored
from holdfast.demo.documents import pdf_of
from holdfast.demo.marsh import read_files
from holdfast.demo.pictures import harbour_picture
from holdfast.values import dataclass

_BUNDLE = resources.files(__package__) / "town_site"
_REDIRECTS = {"/library": "/services/library.html"}
_STAFF = "/staff/"
_FEED = "/news/feed.xml"
# When each state began to hold: what is dated later is not there yet.
_STATE_DAYS = (date(2023, 5, 16), date(2024, 6, 11), date(2025, 9, 23), date(2026, 10, 20))
# Older than what a poll of sitemaps takes for news: pages are left to crawls.
_LISTED_DAYS = (date(2023, 1, 2), date(2024, 3, 1), date(2025, 7, 1), date(2026, 9, 1))
LAST_STATE = len(_STATE_DAYS)

_ONLY = re.compile(r"\[([0-9,-]+)\] ?")
_VARIANTS = re.compile(r"\{\{([^{}]*+)\}\}")
_LIST = re.compile(r"%list (\S+) (\d+)")

_WORDS = {
    "en": {
        "home": "/",
        "town": "Town of Kelpsound",
        "place": "1 Assembly Square · 555-0100",
        "other": "Français",
        "other_home": "/fr/",
        "print": "Print this page",
        "footer": "Kelpsound is an invented town. Its website exists so that you can try an archive on it.",
        "gone": "This page was taken down",
        "missing": "There is no such page",
        "back": "To the front page",
    },
    "fr": {
        "home": "/fr/",
        "town": "Ville de Kelpsound",
        "place": "1, place de l’Assemblée · 555-0100",
        "other": "English",
        "other_home": "/",
        "print": "Imprimer cette page",
        "footer": "Kelpsound est une ville inventée. Son site existe pour qu’on puisse y essayer une archive.",
        "gone": "Cette page a été retirée",
        "missing": "Cette page n’existe pas",
        "back": "Vers l’accueil",
    },
}
_MENUS = {
    "en": {
        "/services/": "Services",
        "/council/": "Council",
        "/news/": "News",
        "/harbour/": "Harbour",
        "/about/": "About",
        "/events.html": "Events",
        "/contact.html": "Contact",
    },
    "fr": {
        "/fr/services/": "Services",
        "/fr/conseil/": "Conseil",
        "/fr/actualites/": "Actualités",
        "/fr/a-propos.html": "La ville",
        "/fr/contact.html": "Contact",
    },
}
_MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "fr": [
        "janvier",
        "février",
        "mars",
        "avril",
        "mai",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
    ],
}


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
    defined = sorted(_defined(_BUNDLE / "pages", "/", state), key=lambda page: page.path)
    published = [page for page in defined if page.day is None or page.day <= _STATE_DAYS[state - 1]]
    pages = {page.path: page for page in published if state <= page.last_state}
    answers: dict[str, SiteAnswer] = read_files(_BUNDLE / "files", "/", origin)
    for page in pages.values():
        body = "\n".join(_body(page, pages)).replace("{marsh}", marsh_url)
        answers[page.path] = stored(_document(page, body, pages).encode(), ".html")
        if page.print_path is not None:
            answers[page.print_path] = stored(_print_version(page, body).encode(), ".html")
    for page in published:
        if page.path not in pages:
            answers[page.path] = refused(HTTPStatus.GONE, _refusal(page.language, "gone"))
    answers |= {path: stored(body, ".pdf") for path, body in _documents(_BUNDLE / "documents", "/documents/", state)}
    answers["/img/harbour-camera.png"] = stored(harbour_picture(state), ".png")
    answers |= {old: moved(new) for old, new in _REDIRECTS.items()}
    answers["/robots.txt"] = stored(_robots(origin), ".txt")
    answers["/sitemap.xml"] = stored(_sitemap(answers, pages, origin, state), ".xml")
    answers[_FEED] = stored(_feed(pages, origin), ".rss")
    return SiteContent(answers=answers, missing=refused(HTTPStatus.NOT_FOUND, _refusal("en", "missing")))


def _defined(folder: Traversable, below: str, state: int) -> Iterator[TownPage]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _defined(item, f"{below}{item.name}/", state)
        else:
            path = below if item.name == "index.html" else f"{below}{item.name}"
            yield _page(path, item.read_text("utf-8"), state)


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
    month = _MONTHS[language][day.month - 1]
    number = "1er" if language == "fr" and day.day == 1 else str(day.day)
    return f'<time datetime="{day:%Y-%m-%d}">{number} {month} {day.year}</time>'


def _document(page: TownPage, body: str, pages: dict[str, TownPage]) -> str:
    words, language = _WORDS[page.language], page.language
    other = page.other if page.other in pages else None
    switch, other_language = other or words["other_home"], "en" if language == "fr" else "fr"
    menu = "".join(
        f'<a href="{path}"{" aria-current=page" if path == page.path else ""}>{label}</a>'
        for path, label in _MENUS[language].items()
    )
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
    joined_head = "\n".join(filter(None, head))
    hero = f'<img class="hero" src="/img/{page.picture[0]}" alt="{escape(page.picture[1])}">' if page.picture else ""
    printing = f'<p><a href="{page.print_path}">{words["print"]}</a></p>' if page.print_path else ""
    return f"""<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{joined_head}
</head>
<body>
<div class="bar"><p><span>{words["place"]}</span>
<a href="{switch}" hreflang="{other_language}" lang="{other_language}">{words["other"]}</a></p></div>
<header class="top"><a class="brand" href="{words["home"]}">
<img src="/img/mark.svg" alt="" width="44" height="44"><span>{words["town"]}</span></a>
<nav>{menu}</nav></header>
{hero}
<main>
{body}
{printing}
</main>
<footer><p>{words["footer"]}</p></footer>
</body>
</html>
"""


def _title(page: TownPage) -> str:
    town = _WORDS[page.language]["town"]
    return page.title if page.title == town else f"{page.title} · {town}"


def _print_version(page: TownPage, body: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="{page.language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(_title(page))}</title>
<link rel="stylesheet" href="/style.css">
</head>
<body class="print">
{body}
<p><a href="{page.path}">{escape(_WORDS[page.language]["town"])}</a></p>
</body>
</html>
"""


def _refusal(language: str, why: str) -> str:
    words = _WORDS[language]
    return (
        f'<!DOCTYPE html><html lang="{language}"><meta charset="utf-8"><title>{words[why]} · {words["town"]}</title>'
        f'<link rel="stylesheet" href="/style.css"><main><h1>{words[why]}</h1>'
        f'<p><a href="{words["home"]}">{words["back"]}</a></p></main></html>'
    )


def _documents(folder: Traversable, below: str, state: int) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _documents(item, f"/{item.name}{below}", state)
        else:
            fields, lines = _parts(item.read_text("utf-8"), state)
            yield f"{below}{item.name.removesuffix('.txt')}.pdf", pdf_of(fields["title"], fields["language"], lines)


def _robots(origin: str) -> bytes:
    rules = f"# The rota is for the staff.\nUser-agent: *\nDisallow: {_STAFF}\n\nSitemap: {origin}/sitemap.xml\n"
    return rules.encode()


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
    channel = f"<title>News of the Town of Kelpsound</title><link>{origin}/news/</link><description>News</description>"
    feed = f'<rss version="2.0"><channel>{channel}\n{items}</channel></rss>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{feed}\n'.encode()


def _noon(day: date) -> str:
    return format_datetime(datetime(day.year, day.month, day.day, 12, tzinfo=UTC))
