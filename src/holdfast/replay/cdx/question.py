"""Parses a CDX query: every parameter of the Wayback Machine's server and of pywb's."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from holdfast.clock import digits14, from_micros, to_micros
from holdfast.errors import Invalid
from holdfast.index.queries import CdxRow
from holdfast.replay.address import BadTimestamp, earliest, is_storable, latest
from holdfast.replay.cdx.queries import IndexPosition, KeyRange
from holdfast.replay.finding import prefix_range
from holdfast.urls import InvalidPattern, surt
from holdfast.urls.scope import Patterns
from holdfast.values import dataclass


class BadCdxParameter(Invalid):
    """A parameter of a CDX query is invalid."""

    code = "bad_cdx_parameter"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the parameter {name} cannot be used: {reason}; docs/cdx.md lists them")
        self.name, self.reason = name, reason


WAYBACK_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
PYWB_FIELDS = ("urlkey", "timestamp", "url", "mime", "status", "digest", "redirect", "length", "offset", "filename")
REVISIT_FIELDS = ("orig.length", "orig.offset", "orig.filename")

_MEANING = {
    "original": "url",
    "mimetype": "mime",
    "statuscode": "status",
    "redirecturl": "redirect",
    "robots": "robotflags",
    "originalLength": "orig.length",
    "originalOffset": "orig.offset",
    "originalFilename": "orig.filename",
    "orig-length": "orig.length",
    "orig-offset": "orig.offset",
    "orig-filename": "orig.filename",
    "endtimestamp": "endtimestamp",
}
WAYBACK_ONLY = frozenset({"original", "mimetype", "statuscode", "redirecturl"})
PYWB_ONLY = frozenset({"url", "mime", "status", "redirect", "filename", "offset"})
_BLANK = re.compile(r"\s")


class Line(NamedTuple):
    capture: CdxRow
    file_name: str = "-"
    original: CdxRow | None = None
    original_file: str = "-"
    counts: Mapping[str, str] = {}
    """dupecount, skipcount, endtimestamp, if requested."""


def _digest(line: Line) -> str:
    # Bare base32 is SHA-1 in every CDX file; any other algorithm is named.
    return (line.capture.digest or "-").removeprefix("sha1:")


def _mime(line: Line) -> str:
    return "warc/revisit" if line.capture.record_type == "revisit" else line.capture.media_type or "unk"


def _status(line: Line) -> str:
    return "-" if line.capture.status is None else str(line.capture.status)


_VALUES: dict[str, Callable[[Line], str]] = {
    "urlkey": lambda line: line.capture.url_key,
    "timestamp": lambda line: digits14(line.capture.captured_at),
    "url": lambda line: line.capture.url,
    "mime": _mime,
    "status": _status,
    "digest": _digest,
    "redirect": lambda line: line.capture.redirect_to or "-",
    "robotflags": lambda line: "-",
    "length": lambda line: str(line.capture.length),
    "offset": lambda line: str(line.capture.offset),
    "filename": lambda line: line.file_name,
    "orig.length": lambda line: "-" if line.original is None else str(line.original.length),
    "orig.offset": lambda line: "-" if line.original is None else str(line.original.offset),
    "orig.filename": lambda line: line.original_file,
    "dupecount": lambda line: line.counts.get("dupecount", "0"),
    "skipcount": lambda line: line.counts.get("skipcount", "0"),
    "endtimestamp": lambda line: line.counts.get("endtimestamp", "-"),
}


def reader(name: str, parameter: str) -> Callable[[Line], str]:
    """Return a function that extracts this field; raise BadCdxParameter for an unknown one."""
    found = _VALUES.get(_MEANING.get(name, name))
    if found is None:
        raise BadCdxParameter(parameter, f"there is no field {name[:40]!r}")
    return found


def needs_files(names: tuple[str, ...]) -> bool:
    return any(_MEANING.get(name, name) in ("filename", "orig.filename") for name in names)


def plain(value: str) -> str:
    """Escape a value as one word of a line."""
    return _BLANK.sub("%20", value) or "-"


Test = Callable[[Line], bool]
_MAX_FILTERS = 8


def read_filters(specs: Iterable[str]) -> list[Test]:
    """Return the tests for these filters; raise BadCdxParameter for an invalid one."""
    asked = [spec for spec in specs if spec]
    # Check the number before compiling any: each takes up to 10 ms, and a URL has room for 1,000.
    if len(asked) > _MAX_FILTERS:
        raise BadCdxParameter("filter", f"there are {len(asked)} of them, {_MAX_FILTERS} are allowed")
    return [_read_filter(spec) for spec in asked]


def _read_filter(spec: str) -> Test:
    is_negated = spec.startswith("!")
    rest = spec[1:] if is_negated else spec
    sign = rest[:1] if rest[:1] in ("=", "~") else ""
    name, colon, expression = rest[len(sign) :].partition(":")
    if not colon:
        raise BadCdxParameter("filter", f"{spec[:80]!r} has no colon; write field:expression")
    value_of = reader(name, "filter")
    matches = _matcher(sign, name, expression)

    def test(line: Line) -> bool:
        return matches(value_of(line)) is not is_negated

    return test


def _matcher(sign: str, name: str, expression: str) -> Callable[[str], bool]:
    """Return the test of a filter's expression.

    `=` is the whole value and `~` an expression at its start, as in pywb. Without a sign the Wayback Machine
    matches an expression against the whole value and pywb against a part of it: the field's name determines the
    vocabulary, and if both have the name, either match is accepted.
    """
    if sign == "=":
        return lambda value: value == expression
    if sign == "~":
        return _regex(f"^(?:{expression})")
    if name in PYWB_ONLY:
        return lambda value: expression in value
    whole = _regex(f"^(?:{expression})$")
    if name in WAYBACK_ONLY:
        return whole
    return lambda value: expression in value or whole(value)


def _regex(expression: str) -> Callable[[str], bool]:
    try:
        pattern = Patterns((expression,))
    except InvalidPattern as exc:
        raise BadCdxParameter("filter", exc.reason) from None
    return lambda value: pattern.first(value) is not None


Collapse = tuple[Callable[[Line], str], int | None]
"""Shows neighbours that agree in a field, or in its first characters (None for all), only once."""


def read_collapses(specs: Iterable[str]) -> list[Collapse]:
    """Return the collapse rules; raise BadCdxParameter for an invalid one."""
    found = []
    for spec in specs:
        name, colon, number = spec.partition(":")
        value_of = reader(name, "collapse")
        if colon and not (number.isascii() and number.isdigit() and len(number) < 6):
            raise BadCdxParameter("collapse", f"{number[:20]!r} is no number of characters")
        found.append((value_of, int(number) if colon else None))
    return found[:8]


def collapse(lines: Iterable[Line], rules: Sequence[Collapse]) -> Iterator[Line]:
    """Yield lines except those that agree with the previous one, with the number skipped and the time of the last.

    With several rules, each sees only the output of the ones before it, as if they were applied in sequence.
    """
    runs: list[str | None] = [None] * len(rules)
    kept: Line | None = None
    skipped, last = 0, "-"
    for line in lines:
        is_new = True
        for at, (value_of, characters) in enumerate(rules):
            value = value_of(line)[:characters]
            if value == runs[at]:
                is_new = False
                break
            runs[at] = value
        if not is_new:
            skipped, last = skipped + 1, digits14(line.capture.captured_at)
            continue
        if kept is not None:
            yield _counted(kept, skipcount=str(skipped), endtimestamp=last)
        kept, skipped, last = line, 0, "-"
    if kept is not None:
        yield _counted(kept, skipcount=str(skipped), endtimestamp=last)


def count_duplicates(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with the number of earlier captures of the same address and body."""
    seen: Counter[str] = Counter()
    key = None
    for line in lines:
        if line.capture.url_key != key:
            key, seen = line.capture.url_key, Counter()
        digest = line.capture.digest or ""
        yield _counted(line, dupecount=str(seen[digest]))
        seen[digest] += 1


def _counted(line: Line, **counts: str) -> Line:
    return line._replace(counts={**line.counts, **counts})


MAX_RECORDS = 150_000
"""Records read for one response, and therefore its maximum size; a resume key continues after them."""
BLOCK = 3_000
"""Records of a page of size 1."""
_MAX_PAGE_SIZE = MAX_RECORDS // BLOCK
_FALSE = frozenset({"", "0", "false", "no", "off"})
_MAX_FIELDS = 40
_QUICK = 1_000


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    CDXJ = "cdxj"
    LINK = "link"


class Order(StrEnum):
    FORWARD = "forward"
    REVERSE = "reverse"
    CLOSEST = "closest"


class CdxMode(StrEnum):
    """The requested result: lines, or information about the pages of the index."""

    LINES = "lines"
    PAGE_COUNT = "page_count"
    PAGE_INDEX = "page_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class CdxQuery:
    url: str
    ranges: tuple[KeyRange, ...]
    period: tuple[datetime, datetime]
    order: Order
    closest: datetime | None
    limit: int
    """Negative for the last lines."""
    offset: int
    filters: tuple[Test, ...]
    collapses: tuple[Collapse, ...]
    fields: tuple[str, ...]
    output: Output
    behind: IndexPosition | None
    show_resume_key: bool
    resolve_revisits: bool
    count_duplicates: bool
    mode: CdxMode
    page: int | None
    page_size: int

    @property
    def is_exact(self) -> bool:
        return len(self.ranges) == 1 and self.ranges[0].low == self.ranges[0].high

    @property
    def is_quick(self) -> bool:
        """Whether a few reads of one address suffice."""
        return self.is_exact and self._is_plain and abs(self.limit) + self.offset <= _QUICK

    @property
    def _is_plain(self) -> bool:
        return not self.filters and not self.collapses and self.page is None and self.mode is CdxMode.LINES

    @property
    def is_lookup(self) -> bool:
        """Whether it only needs the rows of one address from the first capture on."""
        from_the_first = self.order is Order.FORWARD and self.behind is None and self.limit > 0
        return (
            self.is_exact
            and self._is_plain
            and from_the_first
            and not (self.resolve_revisits or self.count_duplicates or needs_files(self.fields))
        )


class _Asked:
    """The parameters of a request, the last of each name unless all are needed."""

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
            # `int` accepts digits of every script, and a thousand of them are slow.
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


def read_question(pairs: Iterable[tuple[str, str]]) -> CdxQuery:
    """Parse these parameters; raise BadCdxParameter with the name of an invalid one."""
    asked = _Asked(pairs)
    url, ranges = _ranges(asked)
    order, closest = _order(asked, ranges)
    output = _output(asked)
    limit = asked.number("limit", MAX_RECORDS, low=-MAX_RECORDS, high=10**12)
    return CdxQuery(
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
        behind=_position(asked.text("resumeKey")),
        show_resume_key=asked.flag("showResumeKey"),
        resolve_revisits=asked.flag("resolveRevisits"),
        count_duplicates=asked.flag("showDupeCount"),
        mode=_mode(asked),
        page=asked.number("page", 0, low=0, high=10**6) if asked.text("page") else None,
        page_size=asked.number("pageSize", 1, low=1, high=_MAX_PAGE_SIZE),
    )


def _mode(asked: _Asked) -> CdxMode:
    if asked.flag("showNumPages"):
        return CdxMode.PAGE_COUNT
    return CdxMode.PAGE_INDEX if asked.flag("showPagedIndex") else CdxMode.LINES


def _ranges(asked: _Asked) -> tuple[str, tuple[KeyRange, ...]]:
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
        # `*` sorts after `)`: the range ends directly after this host.
        return url, (KeyRange(f"{host})", f"{host}*"),)
    if kind == "domain":
        # `)` ends the host itself, `,` starts its subdomains, `:` a port: in this sort order.
        return url, (KeyRange(f"{host})", f"{host}-"), KeyRange(f"{host}:", f"{host};"))
    raise BadCdxParameter("matchType", f"{kind[:20]!r} is not one of exact, prefix, host, domain, range")


def _order(asked: _Asked, ranges: tuple[KeyRange, ...]) -> tuple[Order, datetime | None]:
    wanted = asked.text("sort").lower()
    closest = asked.text("closest")
    if wanted not in ("", "default", "reverse", "closest", "forward"):
        raise BadCdxParameter("sort", f"{wanted[:20]!r} is neither reverse nor closest")
    if wanted == "closest" or (closest and not wanted):
        if not closest:
            # pywb requests everything this way.
            return Order.FORWARD, None
        # Sorting by nearest time works within one URL; for many it would have to read and sort all of them.
        if ranges[0].low != ranges[0].high:
            raise BadCdxParameter("closest", "it is for one address; leave the wildcard and matchType away")
        # Like pywb and the Wayback Machine: a year means its end. With 14 digits only the exact second matches.
        moment = asked.moment("closest", datetime(1, 1, 1, tzinfo=UTC), is_last=True).replace(microsecond=0)
        return Order.CLOSEST, moment
    return (Order.REVERSE if wanted == "reverse" else Order.FORWARD), None


def _output(asked: _Asked) -> Output:
    """Return the format: `output=json` is the Wayback Machine's array, with pywb's `fields` it is JSON lines."""
    wanted = asked.text("output").lower()
    if wanted in ("", "text", "txt", "cdx"):
        return Output.TEXT
    if wanted == "json":
        # Both servers have `output=json` with different meanings; only pywb has `fields`.
        return Output.NDJSON if asked.has("fields") else Output.JSON
    if wanted in ("jsonl", "ndjson"):
        return Output.NDJSON
    if wanted in ("cdxj", "link"):
        return Output(wanted)
    raise BadCdxParameter("output", f"{wanted[:20]!r} is not one of text, json, ndjson, cdxj, link")


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
        ("showDupeCount", "dupecount"),
        ("showSkipCount", "skipcount"),
        ("lastSkipTimestamp", "endtimestamp"),
    ):
        if asked.flag(parameter) and field not in named:
            named.append(field)
    return tuple(named)


def resume_key(position: IndexPosition) -> str:
    packed = json.dumps([position.url_key, to_micros(position.captured_at), position.id], separators=(",", ":"))
    return base64.urlsafe_b64encode(packed.encode()).decode().rstrip("=")


def _position(key: str) -> IndexPosition | None:
    if not key:
        return None
    try:
        # A client may send anything: reject whatever is not exactly ours, without guessing.
        packed = base64.b64decode(key + "=" * (-len(key) % 4), altchars=b"-_", validate=True)
        url_key, micros, number = json.loads(packed)
        is_place = isinstance(url_key, str) and isinstance(micros, int) and isinstance(number, int)
        if is_place and is_storable(url_key) and 0 <= number < 1 << 63:
            return IndexPosition(url_key, from_micros(micros), number)
    except (binascii.Error, ValueError, TypeError, OverflowError, OSError, RecursionError):
        pass
    raise BadCdxParameter("resumeKey", "it was not issued by this server")
