"""The operators of a query, `site:` to `like:`: one table, the source of every help text, and the parsers of their
values.

An operator selects captures and leaves the search for words as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from textwrap import wrap
from typing import Final

from holdfast.errors import UrlRefused
from holdfast.parse.text import fold, words_of
from holdfast.records import from_row
from holdfast.search.addresses import unescaped
from holdfast.search.analysis import is_letter
from holdfast.search.records import SearchSyntax, SyntaxExample, SyntaxOperator
from holdfast.urls import parse
from holdfast.values import dataclass

NEAR_WORDS: Final = 10
"""Default number of words allowed between two words that are near each other."""
MAX_NEAR: Final = 100
MAX_VALUE_WORDS: Final = 32
MAX_NEAR_WORDS: Final = 8
KINDS: Final = ("html", "other", "pdf", "text")
"""The kinds of pages, by their facet names."""
PAGE_TYPES: Final = ("", "article", "listing", "home", "product", "reference", "form", "media")
"""Purpose of a page, if detected; the columns hold the place in this list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSite:
    """On this host or its subdomains, on one port if given; below this directory, folded, if given."""

    host: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedIn:
    """Captured in a time span; `until` is exclusive."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedIn:
    """Published in a time span, by the page's own date; `until` is exclusive."""

    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class OfType:
    name: str


@dataclass(frozen=True, slots=True)
class InLanguage:
    """In a language, by its primary subtag; empty for pages of unknown language."""

    code: str


@dataclass(frozen=True, slots=True)
class ByAuthor:
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InTitle:
    """With these words side by side in the title, in any of their forms."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InUrl:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NearWords:
    """With these words near each other, in any order: at most `distance` other words between neighbours."""

    words: tuple[str, ...]
    distance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSince:
    """With content that differs from that of the previous capture; with `yes=False`, that equals it."""

    yes: bool
    span: CapturedIn | None = None


@dataclass(frozen=True, slots=True)
class LikeCapture:
    """Similar to this capture in its words; never inside parentheses, OR or NOT."""

    snapshot_id: int


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Without:
    part: Condition


Simple = OnSite | CapturedIn | PublishedIn | OfType | InLanguage | ByAuthor | InTitle | InUrl | NearWords | ChangedSince
Condition = Simple | LikeCapture | AllOf | AnyOf | Without


class InvalidValue(ValueError):
    """The value of an operator is invalid; the message says what the operator takes."""


_DATES: Final = "a year, a month or a day: 2023, 2023-05 or 2023-05-31"
_SPAN = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


def _span(value: str, takes: str = _DATES) -> tuple[datetime, datetime | None]:
    """Return the start of a year, month or day, and that of the next one (None at the end of the calendar)."""
    found = _SPAN.fullmatch(value)
    if found is None:
        raise InvalidValue(f"takes {takes}")
    year, month, day = (int(part) if part else None for part in found.groups())
    assert year is not None
    try:
        start = datetime(year, month or 1, day or 1, tzinfo=UTC)
    except ValueError as exc:
        raise InvalidValue(f"takes {takes}") from exc
    try:
        if day is not None:
            return start, datetime.fromtimestamp(start.timestamp() + 86_400, UTC)
        if month is not None:
            return start, datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        return start, datetime(year + 1, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return start, None


def _before(value: str) -> Condition:
    return CapturedIn(until=_span(value)[0])


def _after(value: str) -> Condition:
    return CapturedIn(since=_span(value)[0])


def _published(value: str) -> Condition:
    since, until = _span(value)
    return PublishedIn(since=since, until=until)


def _changed(value: str) -> Condition:
    if value.lower() in ("yes", "no"):
        return ChangedSince(yes=value.lower() == "yes")
    since, until = _span(value, f"yes, no, or {_DATES}")
    return ChangedSince(yes=True, span=CapturedIn(since=since, until=until))


def _site(value: str) -> Condition:
    typed = re.sub(r"^(?:https?://)?(?:\*?\.)?", "", value, flags=re.IGNORECASE)
    try:
        # Not as a seed is typed: `ca` is no address to begin at, and all below it can be asked for.
        address = parse(f"https://{typed}")
    except UrlRefused as exc:
        raise InvalidValue(
            "takes a host or a domain, with a directory if you like: example.org, example.org/en"
        ) from exc
    path = address.group.partition("://")[2].partition("/")[2]
    return OnSite(host=address.domain, path=fold(unescaped(f"/{path}")) if path else "")


def _type(value: str) -> Condition:
    names = [*KINDS, *PAGE_TYPES[1:]]
    if value.lower() not in names:
        raise InvalidValue(f"takes one of {', '.join(names)}")
    return OfType(value.lower())


_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:-[A-Za-z0-9]{1,8}){0,7}")


def _lang(value: str) -> Condition:
    found = _LANGUAGE.fullmatch(value)
    if found is None:
        raise InvalidValue("takes a language tag: en, fr, pt-BR; und where the language is not known")
    code = found[1].lower()
    return InLanguage("" if code == "und" else code)


def _words(value: str, takes: str, *, most: int = MAX_VALUE_WORDS) -> tuple[str, ...]:
    """Return the words of a value, folded; adjacent letters of an unspaced script form one word."""
    words = words_of(value)
    if len(words) > most:
        raise InvalidValue(f"{takes}; at most {most} words")
    if not words:
        raise InvalidValue(takes)
    return tuple(words)


def _intitle(value: str) -> Condition:
    return InTitle(_words(value, 'takes a word, or several in quotes: intitle:flu, intitle:"flu shot"'))


def _author(value: str) -> Condition:
    return ByAuthor(_words(value, 'takes a name: author:doe, author:"Jane Doe"'))


def _inurl(value: str) -> Condition:
    text = fold(unescaped(value))
    if not text:
        raise InvalidValue("takes a part of an address: inurl:covid19.html")
    return InUrl(text)


_NEAR = re.compile(r"(\d{0,3})\((.*)\)", re.DOTALL)


def _near(value: str) -> Condition:
    found = _NEAR.fullmatch(value)
    takes = f"takes two or more words and how far apart, 1 to {MAX_NEAR}: near:5(water school)"
    if found is None:
        raise InvalidValue(takes)
    words, distance = _words(found[2], takes, most=MAX_NEAR_WORDS), int(found[1] or NEAR_WORDS)
    if len(dict.fromkeys(words)) < 2 or not 1 <= distance <= MAX_NEAR:
        raise InvalidValue(takes)
    if any(map(is_letter, words)):
        raise InvalidValue("takes words of two letters or more in scripts that do not part their words")
    return NearWords(words=words, distance=distance)


def _like(value: str) -> Condition:
    if not re.fullmatch(r"[0-9]{1,18}", value):
        raise InvalidValue("takes the number of a capture, as results name it: like:4194305")
    return LikeCapture(int(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    name: str
    value: str
    meaning: str
    examples: tuple[str, ...]
    read: Callable[[str], Condition]
    """Raises InvalidValue."""


OPERATORS: Final = {
    one.name: one
    for one in (
        Operator(
            name="site",
            value="HOST[/DIRECTORY]",
            meaning="On this host and every host below it, whatever the port unless one is named; `www.` is a host"
            " of its own. A name such as `gov.uk` or `ca` stands for all below it. With a path, only what lies in that"
            " directory, whole segments, upper and lower case alike.",
            examples=("site:example.org", "site:example.org/en", "-site:blog.example.org"),
            read=_site,
        ),
        Operator(
            name="before",
            value="YYYY[-MM[-DD]]",
            meaning="Captured before that year, month or day began, UTC; it is not included.",
            examples=("before:2024", "before:2024-03-15"),
            read=_before,
        ),
        Operator(
            name="after",
            value="YYYY[-MM[-DD]]",
            meaning="Captured since that year, month or day began, UTC; it is included, so that"
            " `after:2023 before:2024` is the year 2023.",
            examples=("after:2023", "after:2023-05"),
            read=_after,
        ),
        Operator(
            name="type",
            value="KIND",
            meaning=f"A kind of page: {', '.join(KINDS)}; or what it is for, where that was read of it:"
            f" {', '.join(PAGE_TYPES[1:])}.",
            examples=("type:pdf", "type:article", "-type:html"),
            read=_type,
        ),
        Operator(
            name="lang",
            value="TAG",
            meaning="In this language, by the first part of its tag; `und` where it is not known.",
            examples=("lang:fr", "lang:pt-BR"),
            read=_lang,
        ),
        Operator(
            name="author",
            value="NAME",
            meaning="By authors whose names have all these words; accents and case do not matter.",
            examples=("author:doe", 'author:"Jane Doe"'),
            read=_author,
        ),
        Operator(
            name="published",
            value="YYYY[-MM[-DD]]",
            meaning="Published in that year, month or day, UTC, by what the page says of itself; pages without a"
            " date do not match.",
            examples=("published:2023", "-published:2023-05"),
            read=_published,
        ),
        Operator(
            name="intitle",
            value="WORD",
            meaning="With this word in the title, in any of its forms; in quotes, words side by side. (`title:` looks"
            " for letters, this for words.)",
            examples=("intitle:vaccine", 'intitle:"flu shot"'),
            read=_intitle,
        ),
        Operator(
            name="inurl",
            value="TEXT",
            meaning="With this text somewhere in the address, whatever its case.",
            examples=("inurl:covid19.html", "-inurl:/print/"),
            read=_inurl,
        ),
        Operator(
            name="near",
            value="N(WORDS)",
            meaning="Contains these words in any order, with at most N other words between each word and the next one"
            f' of the query. N is 1 to {MAX_NEAR}, by default {NEAR_WORDS}. `"water school"~5` is the same. With three'
            " or more words, each must be near the next, but not all in one place. Forms of one word (`run running`)"
            " count as one word. In scripts without spaces N counts letters.",
            examples=("near:5(water school)", '"water school"~5'),
            read=_near,
        ),
        Operator(
            name="changed",
            value="yes|no|YYYY[-MM[-DD]]",
            meaning="Whether the body is another than that of the capture before it, of the same address and source;"
            " a first capture has none before it, and is neither. With a year, month or day: changed, and captured"
            " then.",
            examples=("changed:yes", "changed:2023", "changed:no"),
            read=_changed,
        ),
        Operator(
            name="like",
            value="ID",
            meaning="Like this capture by its most telling words, other pages than its own, the most alike first."
            " Instead of words; other operators go with it.",
            examples=("like:4194305", "like:4194305 site:example.org"),
            read=_like,
        ),
    )
}
"""All operators. The CLI help, `GET /api/search/syntax` and docs/search.md are generated from this."""

WORD_SYNTAX: Final = (
    ("flu vaccine", "All words, anywhere in the text, in any of their forms."),
    ('"flu vaccine"', "The words side by side."),
    ("example.org/a", "An address, in every spelling of it."),
    (
        "title:flu (url:/en/ OR snippet:clinic) -archived",
        "title:, snippet: and url: look for letters in one field. AND, OR, NOT, parentheses and `-word` join words.",
    ),
)

RULES: Final = (
    "Operators stand beside the words and say which captures count; the words decide the order.",
    "All of them must hold. OR, NOT, `-` and parentheses join operators with operators:"
    " `(site:a.org OR site:b.org) -type:pdf flu`; between two operators small letters do, too.",
    "Anything else is a word: `10:30`, `std::vector`, `foo:bar`. In quotes an operator is text, too.",
    "An operator with an impossible value, as in `before:yesterday`, is rejected with the correct form.",
)


def as_text() -> str:
    lines = ["Search syntax:", ""]
    for example, meaning in WORD_SYNTAX:
        lines += [f"  {example}", *_wrapped(meaning, "      ")]
    lines += ["", "Operators:", ""]
    for one in OPERATORS.values():
        lines += [f"  {one.name}:{one.value}", *_wrapped(one.meaning, "      "), f"      {'   '.join(one.examples)}"]
    return "\n".join([*lines, "", *(line for rule in RULES for line in _wrapped(rule, "  ", first="- "))])


def _wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
    start = indent if first is None else first
    return wrap(text, 80, initial_indent=start, subsequent_indent=indent, break_long_words=False)


def as_markdown() -> str:
    """Return the operators as a table for docs/search.md, followed by the rules."""
    rows = ["| operator | means | as in |", "|---|---|---|"]
    for one in OPERATORS.values():
        value = one.value.replace("|", "\\|")
        examples = ", ".join(f"`{example}`" for example in one.examples)
        rows.append(f"| `{one.name}:{value}` | {one.meaning} | {examples} |")
    return "\n".join([*rows, "", *(f"- {rule}" for rule in RULES)])


def syntax_record() -> SearchSyntax:
    return SearchSyntax(
        operators=[from_row(SyntaxOperator, one, examples=list(one.examples)) for one in OPERATORS.values()],
        words=[SyntaxExample(example=example, meaning=meaning) for example, meaning in WORD_SYNTAX],
        rules=list(RULES),
    )
