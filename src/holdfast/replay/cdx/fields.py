"""The fields of an index line in two vocabularies: the Wayback Machine's and pywb's. A name decides what is meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.replay.cdx.problem import BadCdxParameter
from holdfast.replay.cdx.queries import Capture, Stand
from holdfast.replay.moments import timestamp

WAYBACK_FIELDS = ("urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length")
PYWB_FIELDS = ("urlkey", "timestamp", "url", "mime", "status", "digest", "redirect", "length", "offset", "filename")
REVISIT_FIELDS = ("orig.length", "orig.offset", "orig.filename")

_MEANING = {
    "original": "url", "mimetype": "mime", "statuscode": "status", "redirecturl": "redirect",
    "robots": "robotflags", "originalLength": "orig.length", "originalOffset": "orig.offset",
    "originalFilename": "orig.filename", "orig-length": "orig.length", "orig-offset": "orig.offset",
    "orig-filename": "orig.filename", "endtimestamp": "endtimestamp",
}  # fmt: skip
WAYBACK_ONLY = frozenset({"original", "mimetype", "statuscode", "redirecturl"})
PYWB_ONLY = frozenset({"url", "mime", "status", "redirect", "filename", "offset"})
_BLANK = re.compile(r"\s")


class Line(NamedTuple):
    """A capture with what its neighbours say about it."""

    capture: Capture
    file_name: str = "-"
    original: Stand | None = None
    original_file: str = "-"
    counts: Mapping[str, str] = {}
    """dupecount, skipcount, endtimestamp, where they are asked for."""


def _digest(line: Line) -> str:
    # Bare base32 is SHA-1 in every CDX file there is; any other algorithm is named.
    return (line.capture.digest or "-").removeprefix("sha1:")


def _mime(line: Line) -> str:
    return "warc/revisit" if line.capture.record_type == "revisit" else line.capture.media_type or "unk"


def _status(line: Line) -> str:
    return "-" if line.capture.status is None else str(line.capture.status)


_VALUES: dict[str, Callable[[Line], str]] = {
    "urlkey": lambda line: line.capture.url_key,
    "timestamp": lambda line: timestamp(line.capture.captured_at),
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
    """Return what gives this field of a line; BadCdxParameter if no vocabulary has it."""
    found = _VALUES.get(_MEANING.get(name, name))
    if found is None:
        raise BadCdxParameter(parameter, f"there is no field {name[:40]!r}")
    return found


def needs_files(names: tuple[str, ...]) -> bool:
    """Whether any of these fields is the name of a file."""
    return any(_MEANING.get(name, name) in ("filename", "orig.filename") for name in names)


def plain(value: str) -> str:
    """Return a value that is one word of a line."""
    return _BLANK.sub("%20", value) or "-"
