"""Signs of noise in one page's own text: the kinds its words name, and traits independent of words.

Pure, and bounded: only the first words of short pages are examined. A page that says "not found" may be an
article about it, so the result is only a candidate; `classifier` decides by comparing other captures.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.parse.text import fold
from holdfast.urls import hash64


class NoiseKind(StrEnum):
    """Why a capture does not show its page."""

    SOFT_404 = "soft_404"
    """The site reports a missing page with status 200, or sends all such URLs to one page."""
    BLOCK_PAGE = "block_page"
    """A firewall, a captcha or a rate limit responded instead."""
    CONSENT_WALL = "consent_wall"
    """A cookie consent form is shown instead."""
    LOGIN_WALL = "login_wall"
    """A login form is shown instead."""
    PARKED = "parked"


MOST_CHARS: Final = 2_600
"""Longer texts are content unless a heading says otherwise, in which case the text before it is a menu."""
MOST_HEADED_CHARS: Final = 20_000
# Most words of a page that may be noise of a kind; walls and errors repeat a menu and some suggestions at most.
_MOST_WORDS: Final = {
    NoiseKind.SOFT_404: 300,
    NoiseKind.BLOCK_PAGE: 200,
    NoiseKind.CONSENT_WALL: 300,
    NoiseKind.LOGIN_WALL: 200,
    NoiseKind.PARKED: 250,
}
# Number of words from the start of the text in which a page states what it is.
_OPENING: Final = 60
# Share of a title part or heading that a name must cover: "How to fix a 404 error" is an article.
_SHARE: Final = 0.6
_MAX_LINE: Final = 300
_HEADINGS: Final = 3
# A page with up to this many words and a firewall's markup is a block page; an article with a captcha form is not.
_BARE_WORDS: Final = 120
# Separators of title parts; a hyphen counts only with spaces around it.
_PARTS: Final = re.compile(
    r"\s[-\u2010-\u2015~]\s|[|:!?.\u00b7\u2022\u00bb\u00ab\u2013\u2014\u3002\uff01\uff1f\uff5c\uff1a]"
)
_WORD: Final = re.compile(r"\w+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SPACE: Final = re.compile(r"\s+")
_ADDRESSES: Final = 4
"""Number of URLs with the same text that counts as proof."""
_HOMES: Final = 5


class PageFacts(NamedTuple):
    url: str
    title: str | None
    headings: Sequence[str]
    text: str
    marks: frozenset[str]


class Candidate(NamedTuple):
    """A kind of noise that a page's own text suggests."""

    kind: NoiseKind
    said: str
    proof: str | None
    least: int
    """Number of URLs that must show the same text if there is no other proof."""


_Use = tuple[NoiseKind, str]
"""A kind of noise, and the part of `phrases.toml` that lists a phrase for it."""
_Spaced = dict[str, list[tuple[tuple[str, ...], list[_Use]]]]


@cache
def _known() -> tuple[_Spaced, list[tuple[str, list[_Use]]]]:
    """Return the phrases with spaces, by their first word, and those of scripts without spaces."""
    uses: dict[tuple[str, ...], list[_Use]] = {}
    for kind, parts in _file().items():
        for part, languages in parts.items():
            for text in (text for texts in languages.values() for text in texts):
                folded = fold(text)
                is_bare = _UNSPACED.search(folded) is not None
                phrase = ("", _SPACE.sub("", folded)) if is_bare else tuple(_WORD.findall(folded))
                uses.setdefault(phrase, []).append((NoiseKind(kind), part))
    spaced: _Spaced = {}
    for phrase in sorted((phrase for phrase in uses if phrase[0]), key=len, reverse=True):
        spaced.setdefault(phrase[0], []).append((phrase, uses[phrase]))
    return spaced, [(phrase[1], uses[phrase]) for phrase in uses if not phrase[0]]


@cache
def _file() -> dict[str, dict[str, dict[str, list[str]]]]:
    with Path(__file__).with_name("phrases.toml").open("rb") as file:
        return tomllib.load(file)


def _line(text: str) -> tuple[list[str], str]:
    """Return the folded words of a text, and the text without spaces if its script has none."""
    folded = fold(text)
    return _WORD.findall(folded), _SPACE.sub("", folded) if _UNSPACED.search(folded) else ""


def _hits(words: list[str], bare: str) -> dict[_Use, list[str]]:
    (spaced, unspaced), found = _known(), dict[_Use, list[str]]()
    for at, word in enumerate(words):
        here: set[_Use] = set()
        for phrase, uses in spaced.get(word, ()):
            if tuple(words[at : at + len(phrase)]) == phrase:
                for use in (use for use in uses if use not in here):
                    here.add(use)
                    found.setdefault(use, []).append(" ".join(phrase))
    for text, uses in unspaced if bare else ():
        if text in bare:
            for use in uses:
                found.setdefault(use, []).append(text)
    return found


class _Said(NamedTuple):
    """Phrases found in the head and the first words of a page, with their places."""

    names: dict[NoiseKind, tuple[str, str]]
    says: dict[NoiseKind, tuple[str, str]]
    repeated: set[NoiseKind]
    """Kinds that two different phrases of the first words name."""
    own: set[NoiseKind]
    """Kinds that a phrase states about the host itself, by its name."""


def _heads_of(title: str | None, headings: Sequence[str]) -> list[tuple[str, str]]:
    texts = [("title", title or ""), *(("heading", heading) for heading in headings[:_HEADINGS])]
    return [(where, text[:_MAX_LINE]) for where, text in texts if text]


def _names_in(heads: Sequence[tuple[str, str]]) -> dict[NoiseKind, tuple[str, str]]:
    """Return names of noise that make up most of a part of a title or heading, the first of each kind."""
    found: dict[NoiseKind, tuple[str, str]] = {}
    for where, text in heads:
        for words, bare in map(_line, _PARTS.split(text)):
            for (kind, part), phrases in _hits(words, bare).items():
                for phrase in phrases if part == "names" else ():
                    own, whole = (len(phrase), len(bare)) if bare else (phrase.count(" ") + 1, len(words))
                    if own >= _SHARE * whole:
                        found.setdefault(kind, (where, phrase))
    return found


def _read(page: PageFacts, core: str) -> _Said:
    heads = _heads_of(page.title, page.headings)
    said = _Said(_names_in(heads), {}, set(), set())
    opening = " ".join(core.split(None, _OPENING)[:_OPENING])
    own = _own_host((urlsplit(page.url).hostname or "").removeprefix("www."))
    for where, text in (*heads, ("text", opening)):
        for (kind, part), phrases in _hits(*_line(text if own is None else own.sub(_THIS_HOST, text))).items():
            if part == "names":
                continue
            said.says.setdefault(kind, (where, phrases[0].replace(_THIS_HOST, "its own name")))
            if part == "own":
                said.own.add(kind)
            elif where == "text" and len(set(phrases)) > 1:
                said.repeated.add(kind)
    return said


# Placeholder for the host of the page in `phrases.toml`.
_THIS_HOST: Final = "thishost"


@lru_cache(maxsize=256)
def _own_host(host: str) -> re.Pattern[str] | None:
    if len(host) < _LONG_NAME or len(host) > _MAX_LINE:
        return None
    names = {host}
    with suppress(UnicodeError):
        # Show the host in Unicode, as its owner writes it, not in its ASCII form.
        names.add(host.encode("ascii").decode("idna"))
    spelled = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"(?<![\w@.-])(?:www\.)?(?:{spelled})(?![\w@-]|\.\w)", re.IGNORECASE)


def word_count(text: str) -> int:
    """Return the number of words; in scripts without spaces, two characters count as one word."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text) if unspaced else text)) + unspaced // 2


def core_of(page: PageFacts) -> str:
    """Return the text from its first heading on, without the menu before it; all of it if none is found."""
    # The parser keeps all of a page that has hardly any content, with its menu first.
    heading = next((one for one in page.headings if one.strip()), None)
    at = -1 if heading is None else f"\n{page.text}\n".find(f"\n{heading}\n")
    # One or two lines before it are not a menu: "You must log in to continue."
    return page.text[at:] if at >= _MENU_CHARS else page.text


def kinds_named(title: str | None, headings: Sequence[str]) -> set[NoiseKind]:
    """Return the kinds of noise that the title or headings name; a longer text is examined only if there are any."""
    return set(_names_in(_heads_of(title, headings)))


def called_alike(page: tuple[str | None, Sequence[str]], other: tuple[str | None, Sequence[str]]) -> bool:
    """Return whether two pages, given by title and headings, have similar names."""
    (title, headings), (other_title, other_headings) = page, other
    name = next((one for one in other_headings if one.strip()), other_title or "")[:_MAX_LINE]
    wanted = set(_WORD.findall(fold(name)))
    heads = " ".join([title or "", *headings[:_HEADINGS]])[: 4 * _MAX_LINE]
    own = set(_WORD.findall(fold(heads)))
    return len(wanted & own) >= _SHARE * len(wanted) if wanted else not own


def suspect(page: PageFacts) -> Candidate | None:
    core = core_of(page)
    if len(core) > MOST_CHARS:
        return None
    heard = _read(page, core)
    kinds = [kind for kind in NoiseKind if kind in heard.names or kind in heard.says]
    words = word_count(core) if kinds else 0
    for kind in kinds:
        if words <= _MOST_WORDS[kind] and _is_enough(kind, heard, page.marks):
            where, what = heard.names.get(kind) or heard.says[kind]
            sentence = f"the {where} says \u201c{what[:80]}\u201d, and the page has {words} words"
            proof = _proof(kind, page, core, words, heard)
            return Candidate(kind, sentence, proof, _ADDRESSES)
    return None


def _is_enough(kind: NoiseKind, heard: _Said, marks: frozenset[str]) -> bool:
    named, said = kind in heard.names, kind in heard.says
    if kind is NoiseKind.LOGIN_WALL:
        # Many sites have a link "Log in" in a short title; a wall asks for the password, or says that it is one.
        return (named and said) or ((named or said) and "password" in marks)
    if kind is NoiseKind.CONSENT_WALL:
        # Many pages have a cookie notice: it is the page itself only if the head says so, or the text says it twice.
        return (named and said) or kind in heard.repeated
    return True


def _proof(kind: NoiseKind, page: PageFacts, core: str, words: int, heard: _Said) -> str | None:
    """Return proof from the page alone, as a sentence: a trait that no article on the subject has."""
    if words > _BARE_WORDS:
        return None
    if kind is NoiseKind.PARKED:
        if "parking" in page.marks:
            return "its markup is that of a service that parks domains"
        return "it offers its own domain" if kind in heard.own else None
    # A phrase anywhere in the text may be an ordinary sentence: "The rate limit is 60 calls a minute."
    if kind not in heard.names:
        return None
    if kind is NoiseKind.BLOCK_PAGE and "challenge" in page.marks:
        return "its markup is that of a firewall's challenge"
    if kind is NoiseKind.BLOCK_PAGE and "captcha" in page.marks:
        return "its markup asks for a captcha"
    if kind is NoiseKind.SOFT_404 and _echoes(page.url, core):
        return "it repeats its own address"
    return None


_LONG_NAME: Final = 4
_MENU_CHARS: Final = 200
_LONG_PATH: Final = 8


def _echoes(url: str, text: str) -> bool:
    path = urlsplit(url).path
    if len(path) < _LONG_PATH or not any(spelled in text for spelled in {path, unquote(path)}):
        return False
    # A manual's chapter about that status may have it in its URL, and show the URL as an example.
    return not any(part == "names" for _, part in _hits(*_line(unquote(path).replace("_", " "))))


def likeness(page: PageFacts) -> int:
    """Return a fingerprint that pages of one site share if they have the same text from their first heading on.

    For pages that their title or headings name as noise, it ignores the URL, numbers and ids; for errors,
    suggestions, too. For all other pages every word counts: entries of a catalogue may differ only in the name in
    their URL.
    """
    names = _names_in(_heads_of(page.title, page.headings))
    core = core_of(page)[:MOST_HEADED_CHARS]
    if not names:
        return hash64("\0".join([*_WORD.findall(fold(page.title or "")), "", *_WORD.findall(fold(core))]))
    asked = _asked(page.url)
    parts = [(page.title or "")[:_MAX_LINE], core]
    # Without a heading the first words are those of a menu, which all pages of a site share: then use all words.
    if NoiseKind.SOFT_404 in names and any(one.strip() for one in page.headings):
        # "Did you mean \u2026": suggestions are short lines; only the first words and all sentences count.
        said = "\n".join(line for line in core.split("\n") if _is_sentence(line))
        return _hashed([*(_skeleton(one, asked) for one in (parts[0], said)), _skeleton(core, asked)[:_ALIKE_WORDS]])
    return _hashed([_skeleton(one, asked) for one in parts])


def _hashed(parts: Sequence[Sequence[str]]) -> int:
    return hash64("\0".join(" ".join(part) for part in parts))


def _is_sentence(line: str) -> bool:
    return line.rstrip().endswith(_ENDS) or word_count(line) > _ENTRY_WORDS


_ENDS: Final = (".", "!", "?", ":", "\u3002", "\uff01", "\uff1f", "\u061f")
_ENTRY_WORDS: Final = 8
_ALIKE_WORDS: Final = 10
_LONG_WORD: Final = 24


def _asked(url: str) -> list[tuple[str, ...]]:
    split = urlsplit(url[:4096])
    path = unquote(split.path)
    leaf = path.rstrip("/").rpartition("/")[2]
    values = [value for _, value in parse_qsl(split.query)][:3]
    spoken = {tuple(_WORD.findall(fold(one))) for one in (path, leaf, leaf.partition(".")[0], *values)}
    return sorted(spoken - {()}, key=len, reverse=True)


def _skeleton(text: str, asked: Sequence[tuple[str, ...]]) -> list[str]:
    words = _WORD.findall(fold(text))
    for phrase in asked:
        kept: list[str] = []
        at = 0
        while at < len(words):
            # Remove it only as a whole: a word of the URL may also be in the menu of every page.
            if tuple(words[at : at + len(phrase)]) == phrase:
                at += len(phrase)
            else:
                kept.append(words[at])
                at += 1
        words = kept
    return [word for word in words if len(word) < _LONG_WORD and not any(map(str.isdigit, word))]


_INDEX: Final = re.compile(r"(?:index|default|home)(?:\.\w{2,5})?|")


def is_index(path: str) -> bool:
    return _INDEX.fullmatch(path.rstrip("/").rpartition("/")[2].lower()) is not None


def site_of(url: str) -> int:
    return hash64(urlsplit(url).netloc.rpartition("@")[2].lower().removeprefix("www."))


def leaf_of(url: str) -> int:
    """Return a hash of the last name in a URL, which is the same for one page in ten versions of a manual.

    A URL passed on in the query (`?next=/page`) counts as part of it.
    """
    split = urlsplit(url)
    names = [name for name in split.path.split("/") if not _INDEX.fullmatch(name.lower())]
    handed = [value for _, value in parse_qsl(split.query[:4096]) if value.startswith(("/", "http:", "https:"))]
    return hash64("\0".join([names[-1] if names else "", *handed[:1]]))


_ERROR_PATH: Final = re.compile(
    r"/(?:404|error-?404|404-?error|not[-_]?found|page[-_]?not[-_]?found|errors?/404|nicht-gefunden|introuvable)"
    r"(?:\.\w{2,5})?/?"
)
_LOGIN_PATH: Final = re.compile(
    r"(?:/[^/]{1,40}){0,4}/(?:log-?in|sign-?in|logon|sso|auth|authenticate|connexion|anmelden|inloggen|wp-login)"
    r"(?:\.\w{2,5})?/?"
)


def suspect_redirect(url: str, target: str) -> tuple[Candidate, int] | None:
    """Return the kind of noise that a redirect to a start page, an error page or a login suggests, and its likeness.

    Only for redirects within a site, and never to the same URL in another spelling.
    """
    here, there = urlsplit(url), urlsplit(target)
    if site_of(url) != site_of(target) or here.path.rstrip("/") == there.path.rstrip("/"):
        return None
    path = there.path.lower()
    like = hash64(f"to {path}")
    if _ERROR_PATH.fullmatch(path):
        return Candidate(NoiseKind.SOFT_404, "it leads to the site's error page", "the address names it so", 1), like
    if _LOGIN_PATH.fullmatch(path):
        return Candidate(NoiseKind.LOGIN_WALL, "it leads to the site's login", None, _ADDRESSES), like
    is_home = path in ("", "/") and not there.query
    if is_home and not is_index(here.path):
        return Candidate(NoiseKind.SOFT_404, "it leads to the site's start page", None, _HOMES), like
    return None


def suspect_home_text(words: int) -> Candidate | None:
    # A site rendered by scripts has one shell for all its URLs, and each of them may be a page.
    if words < _SHELL_WORDS:
        return None
    return Candidate(NoiseKind.SOFT_404, "it shows the text of the site's start page", None, _HOMES)


_SHELL_WORDS: Final = 30
