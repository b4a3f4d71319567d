"""A CDX query as it is asked: every parameter of the Wayback Machine's server and of pywb's, read once."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from holdfast.clock import from_micros, to_micros
from holdfast.replay.address import is_storable
from holdfast.replay.browse import prefix_range
from holdfast.replay.cdx.fields import PYWB_FIELDS, REVISIT_FIELDS, WAYBACK_FIELDS, reader
from holdfast.replay.cdx.filters import Collapse, Test, read_collapses, read_filters
from holdfast.replay.cdx.problem import BadCdxParameter
from holdfast.replay.cdx.queries import KeyRange, Spot
from holdfast.replay.moments import BadTimestamp, earliest, latest
from holdfast.urls import surt

MAX_RECORDS = 150_000
"""Records that one answer looks at, and therefore the most that it holds; behind them a resume key goes on."""
BLOCK = 3_000
"""Records of a page of size 1."""
_MAX_PAGE_SIZE = MAX_RECORDS // BLOCK
_FALSE = frozenset({"", "0", "false", "no", "off"})
_MAX_FIELDS = 40
_QUICK = 1_000


class Output(StrEnum):
    """The forms of an answer."""

    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    CDXJ = "cdxj"
    LINK = "link"


class Order(StrEnum):
    """The order of an answer."""

    FORWARD = "forward"
    REVERSE = "reverse"
    CLOSEST = "closest"


class Mode(StrEnum):
    """What is asked for: lines, or what the pages of the index are."""

    LINES = "lines"
    PAGE_COUNT = "page_count"
    PAGE_INDEX = "page_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query that can be answered."""

    url: str
    ranges: tuple[KeyRange, ...]
    period: tuple[datetime, datetime]
    order: Order
    closest: datetime | None
    limit: int
    """Negative for the last ones."""
    offset: int
    filters: tuple[Test, ...]
    collapses: tuple[Collapse, ...]
    fields: tuple[str, ...]
    output: Output
    behind: Spot | None
    show_resume_key: bool
    resolve_revisits: bool
    count_duplicates: bool
    mode: Mode
    page: int | None
    page_size: int

    @property
    def is_exact(self) -> bool:
        """Whether it is about one address."""
        return len(self.ranges) == 1 and self.ranges[0].low == self.ranges[0].high

    @property
    def is_quick(self) -> bool:
        """Whether a few reads of one address answer it."""
        is_plain = not self.filters and not self.collapses and self.page is None and self.mode is Mode.LINES
        return self.is_exact and is_plain and abs(self.limit) + self.offset <= _QUICK


class _Asked:
    """The parameters of a request, the last of each name unless all are wanted."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs = list(pairs)
        self._last = dict(self._pairs)

    def text(self, name: str) -> str:
        return self._last.get(name, "").strip()

    def has(self, name: str) -> bool:
        return name in self._last

    def every(self, *names: str) -> list[str]:
        return [value for name, value in self._pairs if name in names]

    def flag(self, name: str) -> bool:
        return self.text(name).lower() not in _FALSE

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        text = self.text(name)
        if not text:
            return default
        try:
            number = int(text[:20]) if text.isascii() else low - 1
        except ValueError:
            raise BadCdxParameter(name, f"{text[:40]!r} is no number") from None
        if not low <= number <= high:
            raise BadCdxParameter(name, f"{text[:40]} is not between {low} and {high}")
        return number

    def moment(self, name: str, default: datetime, *, is_last: bool) -> datetime:
        text = self.text(name)
        try:
            return (latest(text) if is_last else earliest(text)) if text else default
        except BadTimestamp:
            raise BadCdxParameter(name, f"{text[:40]!r} is no timestamp of 1 to 14 digits") from None


def read_question(pairs: Iterable[tuple[str, str]]) -> Question:
    """Return the query that these parameters spell; BadCdxParameter names the one that cannot be used."""
    asked = _Asked(pairs)
    url, ranges = _ranges(asked)
    order, closest = _order(asked, ranges)
    output = _output(asked)
    limit = asked.number("limit", MAX_RECORDS, low=-MAX_RECORDS, high=10**12)
    return Question(
        url=url,
        ranges=ranges,
        period=(
            asked.moment("from", datetime(1, 1, 1, tzinfo=UTC), is_last=False),
            asked.moment("to", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), is_last=True),
        ),
        order=order,
        closest=closest,
        limit=min(limit, MAX_RECORDS),
        offset=asked.number("offset", 0, low=0, high=MAX_RECORDS),
        filters=tuple(read_filters(asked.every("filter"))),
        collapses=tuple(read_collapses(asked.every("collapse"))),
        fields=_fields(asked, output),
        output=output,
        behind=_spot(asked.text("resumeKey")),
        show_resume_key=asked.flag("showResumeKey"),
        resolve_revisits=asked.flag("resolveRevisits"),
        count_duplicates=asked.flag("showDupeCount"),
        mode=_mode(asked),
        page=asked.number("page", 0, low=0, high=10**6) if asked.text("page") else None,
        page_size=asked.number("pageSize", 1, low=1, high=_MAX_PAGE_SIZE),
    )


def _mode(asked: _Asked) -> Mode:
    if asked.flag("showNumPages"):
        return Mode.PAGE_COUNT
    return Mode.PAGE_INDEX if asked.flag("showPagedIndex") else Mode.LINES


def _ranges(asked: _Asked) -> tuple[str, tuple[KeyRange, ...]]:
    """Return the address and the keys that it and its match type cover."""
    url = asked.text("url")
    kind = asked.text("matchType").lower()
    if not url or len(url) > 8192:
        raise BadCdxParameter("url", "it is missing" if not url else "it is too long")
    if not is_storable(url):
        raise BadCdxParameter("url", "it holds characters that no address has")
    if not kind:
        if url.startswith("*."):
            kind, url = "domain", url[2:]
        elif url.endswith("*") and len(url) > 1:
            kind, url = "prefix", url[:-1]
        else:
            kind = "exact"
    url = url.removeprefix("*.") if kind == "domain" else url
    if kind == "exact":
        key = surt(url)
        return url, (KeyRange(key, key),)
    if kind == "prefix":
        return url, (KeyRange(*prefix_range(url.removesuffix("*"))),)
    if kind == "range":
        return url, (KeyRange(surt(url), "\U0010ffff"),)
    host = surt(url).partition(")")[0]
    if kind == "host":
        return url, (KeyRange(f"{host})", f"{host}*"),)
    if kind == "domain":
        # `)` ends the host itself, `,` begins its subdomains, `:` a port: in this order among the characters.
        return url, (KeyRange(f"{host})", f"{host}-"), KeyRange(f"{host}:", f"{host};"))
    raise BadCdxParameter("matchType", f"{kind[:20]!r} is none of exact, prefix, host, domain, range")


def _order(asked: _Asked, ranges: tuple[KeyRange, ...]) -> tuple[Order, datetime | None]:
    wanted = asked.text("sort").lower()
    closest = asked.text("closest")
    if wanted not in ("", "default", "reverse", "closest", "forward"):
        raise BadCdxParameter("sort", f"{wanted[:20]!r} is neither reverse nor closest")
    if wanted == "closest" or (closest and not wanted):
        if not closest:
            return Order.FORWARD, None  # pywb asks so for everything
        if ranges[0].low != ranges[0].high:
            raise BadCdxParameter("closest", "it is for one address; leave the wildcard and matchType away")
        # As pywb and the Wayback Machine: a year means its end. Of 14 digits only the second itself is meant.
        moment = asked.moment("closest", datetime(1, 1, 1, tzinfo=UTC), is_last=True).replace(microsecond=0)
        return Order.CLOSEST, moment
    return (Order.REVERSE if wanted == "reverse" else Order.FORWARD), None


def _output(asked: _Asked) -> Output:
    """Return the form: `output=json` is the Wayback Machine's array, or pywb's lines if `fields` (its word) is used."""
    wanted = asked.text("output").lower()
    if wanted in ("", "text", "txt", "cdx"):
        return Output.TEXT
    if wanted == "json":
        return Output.NDJSON if asked.has("fields") else Output.JSON
    if wanted in ("jsonl", "ndjson"):
        return Output.NDJSON
    if wanted in ("cdxj", "link"):
        return Output(wanted)
    raise BadCdxParameter("output", f"{wanted[:20]!r} is none of text, json, ndjson, cdxj, link")


def _fields(asked: _Asked, output: Output) -> tuple[str, ...]:
    named = [name.strip() for value in asked.every("fl", "fields") for name in value.split(",") if name.strip()]
    for name in named:
        reader(name, "fl")
    if len(named) > _MAX_FIELDS:
        raise BadCdxParameter("fl", f"more than {_MAX_FIELDS} fields")
    if not named:
        named = [*(WAYBACK_FIELDS if output in (Output.TEXT, Output.JSON) else PYWB_FIELDS)]
        named += REVISIT_FIELDS if asked.flag("resolveRevisits") else ()
    for parameter, field in (
        ("showDupeCount", "dupecount"), ("showSkipCount", "skipcount"), ("lastSkipTimestamp", "endtimestamp"),
    ):  # fmt: skip
        if asked.flag(parameter) and field not in named:
            named.append(field)
    return tuple(named)


def resume_key(spot: Spot) -> str:
    """Return a place in the index as the word that a client hands back."""
    packed = json.dumps([spot.url_key, to_micros(spot.captured_at), spot.id], separators=(",", ":"))
    return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")


def _spot(key: str) -> Spot | None:
    if not key:
        return None
    try:
        packed = base64.b64decode(key + "=" * (-len(key) % 4), altchars=b"-_", validate=True)
        url_key, micros, number = json.loads(packed)
        is_place = isinstance(url_key, str) and isinstance(micros, int) and isinstance(number, int)
        if is_place and is_storable(url_key) and 0 <= number < 1 << 63:
            return Spot(url_key, from_micros(micros), number)
    except (binascii.Error, ValueError, TypeError, OverflowError, OSError, RecursionError):
        pass
    raise BadCdxParameter("resumeKey", "it is none that this server gave")
