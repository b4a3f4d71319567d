"""The generator: pages of twelve classes in several languages, each with the text that a reader came for.

Every sentence is put together here from word lists, so nothing is copied; a fixed seed makes every run the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

_WORDS = {
    "en": (
        "the harbour council decided on a new plan for tides and boats because storms damaged several walls last "
        "winter while engineers measured water levels near the old bridge and reported that repairs would take two "
        "years although some residents asked for a faster answer after many meetings"
    ),
    "fr": (
        "le conseil du port a décidé un nouveau plan pour les marées et les bateaux parce que des tempêtes ont abîmé "
        "plusieurs murs pendant l’hiver tandis que les ingénieurs mesuraient le niveau près du vieux pont et "
        "annonçaient des travaux de deux années malgré les demandes"
    ),
    "de": (
        "der Rat des Hafens beschloss einen neuen Plan für Gezeiten und Boote weil Stürme im Winter mehrere Mauern "
        "beschädigten während Ingenieure den Wasserstand an der alten Brücke maßen und berichteten dass die "
        "Ausbesserung zwei Jahre dauern würde obwohl Anwohner schneller Antwort wollten"
    ),
    "ja": (
        "港 の 議会 は 新しい 計画 を 決めた 冬 の 嵐 が 壁 を 壊した ため "
        "技師 は 古い 橋 の 水位 を 測り 修理 に 二年 かかる と 報告 した"
    ),
    "ar": (
        "قرر مجلس الميناء خطة جديدة للمد والقوارب لأن العواصف أضرت بعدة جدران في الشتاء بينما قاس المهندسون مستوى "
        "الماء قرب الجسر القديم وأعلنوا أن الإصلاح يستغرق سنتين رغم طلب السكان"
    ),
}
_MENU = {
    "en": ("Home", "News", "Sport", "Weather", "Contact", "About us", "Jobs", "Archive"),
    "fr": ("Accueil", "Actualités", "Sport", "Météo", "Contact", "À propos", "Emplois", "Archives"),
    "de": ("Startseite", "Nachrichten", "Sport", "Wetter", "Kontakt", "Über uns", "Stellen", "Archiv"),
    "ja": ("ホーム", "ニュース", "スポーツ", "天気", "連絡先", "概要", "求人", "保存庫"),
    "ar": ("الرئيسية", "أخبار", "رياضة", "طقس", "اتصل", "حول", "وظائف", "أرشيف"),
}
LANGUAGES = tuple(_WORDS)


class GoldenPage(NamedTuple):
    """One page and what is to be found in it."""

    name: str
    group: str
    html: str
    text: str
    """The main text, one block a line."""


class Writer:
    """Writes prose and frames of one language, by chance that is always the same."""

    def __init__(self, language: str, seed: int) -> None:
        self.language = language
        self._chance = random.Random(f"{language} {seed}")
        self._words = _WORDS[language].split()
        self._joint = "" if language == "ja" else " "

    def line(self, least: int = 8, most: int = 22) -> str:
        """Return a sentence."""
        words = [self._chance.choice(self._words) for _ in range(self._chance.randint(least, most))]
        text = self._joint.join(words)
        return text[:1].upper() + text[1:] + ("。" if self.language == "ja" else ".")

    def title(self) -> str:
        """Return a headline."""
        return self.line(4, 7).rstrip(".。")

    def paragraphs(self, count: int) -> list[str]:
        """Return blocks of some sentences each."""
        gap = "" if self.language == "ja" else " "
        return [gap.join(self.line() for _ in range(self._chance.randint(2, 5))) for _ in range(count)]

    def menu(self, tag: str = "nav") -> str:
        """Return a navigation."""
        items = "".join(f'<li><a href="/{n}">{name}</a></li>' for n, name in enumerate(_MENU[self.language]))
        return f"<{tag}><ul>{items}</ul></{tag}>"

    def teasers(self, count: int = 6) -> str:
        """Return links to other pages, with their headlines."""
        return "".join(f'<li><a href="/other/{n}">{self.title()}</a></li>' for n in range(count))

    def page(self, head: str, body: str) -> str:
        """Return a whole page."""
        way = ' dir="rtl"' if self.language == "ar" else ""
        return f'<!doctype html><html lang="{self.language}"{way}><head>{head}</head><body>{body}</body></html>'


def _wrapped(lines: list[str]) -> str:
    return "".join(f"<p>{line}</p>" for line in lines)


def _told(title: str, lines: list[str]) -> str:
    return "\n".join([title, *lines])


_Made = tuple[str, str]


def article(writer: Writer) -> _Made:
    """An article in its element, with navigation, a footer and links to others."""
    title, lines = writer.title(), writer.paragraphs(6)
    body = (
        f"<header>{writer.menu()}</header><article><h1>{title}</h1>{_wrapped(lines)}</article>"
        f"<aside><h3>More</h3><ul>{writer.teasers()}</ul></aside><footer><p>{writer.line()}</p></footer>"
    )
    return writer.page(f"<title>{title} - Site</title>", body), _told(title, lines)


def news(writer: Writer) -> _Made:
    """A news page of nameless boxes: only classes tell what they are, and a sidebar is as long as the text."""
    title, lines = writer.title(), writer.paragraphs(7)
    middle = f'<div class="promo-box"><p>{writer.line()}</p></div>'
    body = (
        f'<div class="top-menu"><ul>{writer.teasers(5)}</ul></div><div id="wrap"><div class="story"><h1>{title}</h1>'
        f'{_wrapped(lines[:3])}{middle}{_wrapped(lines[3:])}</div><div class="sidebar"><h3>{writer.title()}</h3>'
        f"{_wrapped(writer.paragraphs(2))}<ul>{writer.teasers(8)}</ul></div></div>"
        f'<div class="related-stories"><ul>{writer.teasers(6)}</ul></div>'
    )
    return writer.page(f"<title>{title}</title>", body), _told(title, lines)


def forum(writer: Writer) -> _Made:
    """A thread: every post is content, whatever its class is called."""
    title = writer.title()
    posts = [writer.paragraphs(2) for _ in range(6)]
    shown = "".join(f'<div class="comment"><div class="post-body">{_wrapped(post)}</div></div>' for post in posts)
    body = f'{writer.menu("div")}<div class="breadcrumbs"><a href="/">Forum</a></div><h1>{title}</h1>{shown}'
    return writer.page(f"<title>{title}</title>", body), _told(title, [line for post in posts for line in post])


def docs(writer: Writer) -> _Made:
    """A page of a manual: terms with their meanings, code, a table, signs behind its headings."""
    title, lines = writer.title(), writer.paragraphs(3)
    names = [f"tide_{n}(level, *marks)" for n in range(6)]
    meanings = [writer.line() for _ in names]
    code = "import tides\nfor level in tides.levels():\n    print(level)"
    rows = [(f"flag_{n}", writer.line(3, 6)) for n in range(4)]
    listed = "".join(
        f'<dt id="t{n}"><code>{name[:5]}</code><code>{name[5:]}</code><a class="headerlink" href="#t{n}">¶</a></dt>'
        f"<dd><p>{meaning}</p></dd>"
        for n, (name, meaning) in enumerate(zip(names, meanings, strict=True))
    )
    table = "".join(f"<tr><td><code>{name}</code></td><td>{told}</td></tr>" for name, told in rows)
    body = (
        '<div class="navheader"><table><tr><td><a href=a>Prev</a></td><td><a href=b>Next</a></td></tr></table></div>'
        f'<div class="section"><h1>{title}<a class="headerlink" href="#top">¶</a></h1>{_wrapped(lines)}'
        f"<dl>{listed}</dl>"
        f'<pre>{code}</pre><table>{table}</table></div><div class="sphinxsidebar"><ul>{writer.teasers(6)}</ul></div>'
    )
    meant = [part for pair in zip(names, meanings, strict=True) for part in pair]
    cells = [part for row in rows for part in row]
    return writer.page(f"<title>{title}</title>", body), _told(title, [*lines, *meant, *code.splitlines(), *cells])


def listing(writer: Writer) -> _Made:
    """A list of pages: its links are what it is for."""
    title = writer.title()
    heads = [writer.title() for _ in range(24)]
    items = "".join(f'<li><a href="/item/{n}">{head}</a></li>' for n, head in enumerate(heads))
    body = f"{writer.menu()}<h1>{title}</h1><ul>{items}</ul><footer><p>{writer.line()}</p></footer>"
    return writer.page(f"<title>{title}</title>", body), _told(title, heads)


def banner(writer: Writer) -> _Made:
    """An article behind a cookie banner, a newsletter box and share buttons."""
    title, lines = writer.title(), writer.paragraphs(5)
    body = (
        f'<div id="cookie-consent"><p>{writer.line()}</p><button>OK</button></div>{writer.menu()}<main><h1>{title}</h1>'
        f'{_wrapped(lines[:2])}<div class="share-buttons"><a href="/s">Share</a> <a href="/t">Tell</a></div>'
        f'{_wrapped(lines[2:])}<div class="newsletter-signup"><p>{writer.line()}</p></div></main>'
    )
    return writer.page(f"<title>{title}</title>", body), _told(title, lines)


def comments(writer: Writer) -> _Made:
    """A long article with a few short comments below it, all inside the same element."""
    title, lines = writer.title(), writer.paragraphs(9)
    said = "".join(f'<div class="comment-item"><p>{writer.line(4, 9)}</p></div>' for _ in range(5))
    body = (
        f"{writer.menu()}<article><h1>{title}</h1>{_wrapped(lines)}"
        f'<section id="comments"><h3>{writer.title()}</h3>{said}</section></article>'
    )
    return writer.page(f"<title>{title}</title>", body), _told(title, lines)


def layout(writer: Writer) -> _Made:
    """An old page: tables in tables for its columns, `font` for its headings, a menu of links in a cell."""
    title, lines = writer.title(), writer.paragraphs(5)
    menu = "".join(f'<tr><td><a href="/{n}">{name}</a></td></tr>' for n, name in enumerate(_MENU[writer.language]))
    inner = "<br><br>".join(lines)
    body = (
        f'<table width="100%"><tr><td width="20%"><table>{menu}</table></td><td><table><tr><td><h1>{title}</h1>'
        f'<font size="2">{inner}</font></td></tr></table></td></tr>'
        f'<tr><td colspan="2"><a href="/a">A</a> | <a href="/b">B</a></td></tr></table>'
    )
    return writer.page(f"<title>{title}</title>", body), _told(title, lines)


def marked(writer: Writer) -> _Made:
    """A page whose body is marked by microdata, among boxes that no class tells apart."""
    title, lines = writer.title(), writer.paragraphs(6)
    body = (
        f'<div class="a1"><ul>{writer.teasers(4)}</ul><p>{writer.line()}</p></div><div class="b2" itemscope '
        f'itemtype="https://schema.org/NewsArticle"><h1 itemprop="headline">{title}</h1><div itemprop="articleBody">'
        f'{_wrapped(lines)}</div></div><div class="c3">{_wrapped(writer.paragraphs(3))}'
        f"<ul>{writer.teasers(6)}</ul></div>"
    )
    return writer.page(f"<title>{title}</title>", body), "\n".join(lines)


def broken(writer: Writer) -> _Made:
    """Markup that was never closed, misnested and cut off."""
    title, lines = writer.title(), writer.paragraphs(5)
    inner = "<p>".join(f"<b><i>{line[:12]}</b></i>{line[12:]}" for line in lines)
    body = f"{writer.menu('div')}<div><h1>{title}</h2><p>{inner}<div class=ad><table><tr><td>"
    return f"<html lang={writer.language}><title>{title}</title><body>{body}", _told(title, lines)


def nameless(writer: Writer) -> _Made:
    """Three columns of boxes whose classes tell nothing: links, the text, blurbs that each begin with a link."""
    title, lines = writer.title(), writer.paragraphs(6)
    blurbs = "".join(
        f'<div class="x7"><a href="/b/{n}">{writer.title()}</a><p>{writer.line()}</p></div>' for n in range(3)
    )
    body = (
        f'<div class="row"><div class="col-2"><ul>{writer.teasers(9)}</ul></div><div class="col-7"><h1>{title}</h1>'
        f'{_wrapped(lines)}</div><div class="col-3">{blurbs}</div></div>'
        f'<div class="row"><p>{writer.line()}</p><ul>{writer.teasers(4)}</ul></div>'
    )
    return writer.page(f"<title>{title}</title>", body), _told(title, lines)


def scripted(writer: Writer) -> _Made:
    """A page that a script draws: its text stands in its data alone."""
    title, lines = writer.title(), writer.paragraphs(5)
    data = {
        "@context": "https://schema.org",
        "@type": "NewsArticle",
        "headline": title,
        "articleBody": "\n".join(lines),
    }
    body = f'<div id="app"><noscript>{writer.line()}</noscript><p>{writer.line(2, 4)}</p></div>'
    head = f'<title>{title}</title><script type="application/ld+json">{json.dumps(data)}</script>'
    return writer.page(head, body), "\n".join(lines)


CLASSES: dict[str, Callable[[Writer], _Made]] = {
    made.__name__: made
    for made in (article, news, forum, docs, listing, banner, comments, layout, marked, nameless, scripted, broken)
}


def golden_pages() -> Iterator[GoldenPage]:
    """Yield all pages: each class in each language."""
    for group, made in CLASSES.items():
        for number, language in enumerate(LANGUAGES):
            html, text = made(Writer(language, number))
            yield GoldenPage(f"{group}-{language}", group, html, text)


def word_f1(found: str, wanted: str, *, by_letter: bool = False) -> float:
    """Return the F1 of two texts as bags of words, or of letters where words are not parted."""
    ours, theirs = (list("".join(text.split())) if by_letter else text.split() for text in (found, wanted))
    counts: dict[str, int] = {}
    for word in theirs:
        counts[word] = counts.get(word, 0) + 1
    hits = 0
    for word in ours:
        if counts.get(word, 0) > 0:
            counts[word] -= 1
            hits += 1
    return 2 * hits / (len(ours) + len(theirs)) if ours or theirs else 1.0
