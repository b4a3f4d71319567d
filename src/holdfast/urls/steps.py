"""Explains how a URL was normalised: every step that changed it, for people.

The steps are those of `address.parse`, shown separately. Any other change by the parser is one separate step,
so that the last step always gives the exact normal form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

import url as whatwg

from holdfast.urls.address import EDGES, IGNORED, Url, parse_seed, without_userinfo
from holdfast.urls.sites import DEFAULT, Normalisation, sites_of


class SpellingStep(StrEnum):
    TRIMMED = "trimmed"
    LINE_ENDS = "line_ends"
    SCHEME_ADDED = "scheme_added"
    CREDENTIALS = "credentials"
    FRAGMENT = "fragment"
    SCHEME_CASE = "scheme_case"
    HOST_CASE = "host_case"
    HOST_ASCII = "host_ascii"
    DEFAULT_PORT = "default_port"
    DOT_SEGMENTS = "dot_segments"
    WRITTEN_OUT = "written_out"
    FINAL_DOT = "final_dot"
    HTTPS = "https"
    ESCAPES = "escapes"
    TRAILING_SLASH = "trailing_slash"
    TRACKING = "tracking"
    EMPTY_QUERY = "empty_query"
    QUERY_ORDER = "query_order"


SENTENCES: Final[dict[SpellingStep, str]] = {
    SpellingStep.TRIMMED: "white space around it is dropped",
    SpellingStep.LINE_ENDS: "tabs and line ends inside are dropped",
    SpellingStep.SCHEME_ADDED: "it has no scheme, so https is assumed",
    SpellingStep.CREDENTIALS: "its user name and password are left out; they belong in the source's settings",
    SpellingStep.FRAGMENT: "the fragment stays in the browser and is never asked for",
    SpellingStep.SCHEME_CASE: "a scheme is written in lower case",
    SpellingStep.HOST_CASE: "a host is written in lower case",
    SpellingStep.HOST_ASCII: "an international host is written as the DNS knows it",
    SpellingStep.DEFAULT_PORT: "the port of the scheme itself is not written",
    SpellingStep.DOT_SEGMENTS: "the segments . and .. are resolved",
    SpellingStep.WRITTEN_OUT: "the URL standard writes it so: a path begins with a slash, other characters are escaped",
    SpellingStep.FINAL_DOT: "the final dot of a host is another spelling of the same host",
    SpellingStep.HTTPS: "the source takes http and https for one page",
    SpellingStep.ESCAPES: "escapes of plain characters are decoded, the others are in upper case",
    SpellingStep.TRAILING_SLASH: "the source takes an address with and without a slash at its end for one page",
    SpellingStep.TRACKING: "parameters that only follow readers around are dropped",
    SpellingStep.EMPTY_QUERY: "empty parameters and an empty query are dropped",
    SpellingStep.QUERY_ORDER: "parameters are sorted by name",
}

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/\\?#]*)([^?#]*)([^#]*)(?:#.*)?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_DOT = re.compile(r"\.|%2e", re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}


class SpelledStep(NamedTuple):
    step: SpellingStep
    after: str

    @property
    def sentence(self) -> str:
        return SENTENCES[self.step]


class Spelling(NamedTuple):
    """A URL written by a person, its normal form, and the steps in between that changed something."""

    url: Url
    steps: tuple[SpelledStep, ...]


def spell(text: str, policy: Normalisation = DEFAULT) -> Spelling:
    """Return how a URL is normalised, step by step; raise `UrlRefused`, whose message repeats no password.

    A URL with credentials is parsed without them; the steps mention it.
    """
    bare = without_userinfo(text) if "@" in text else text
    url = parse_seed(bare, policy)
    steps: list[SpelledStep] = []
    before = text if bare == text else bare
    if bare != text:
        # Do not show the URL before this step: it contains a password.
        steps.append(SpelledStep(SpellingStep.CREDENTIALS, bare))
    for step, after in (*_to_fetch(before, url), *_to_normalised(url, policy)):
        if after != before:
            steps.append(SpelledStep(step, after))
            before = after
    return Spelling(url, tuple(steps))


def _to_fetch(text: str, url: Url) -> Iterator[tuple[SpellingStep, str]]:
    text = text.strip(EDGES)
    yield SpellingStep.TRIMMED, text
    text = text.translate(IGNORED)
    yield SpellingStep.LINE_ENDS, text
    if text.startswith("//"):
        text = f"https:{text}"
    elif not _SCHEME.match(text) or not text.lower().startswith(("http:", "https:")):
        text = f"https://{text}"
    yield SpellingStep.SCHEME_ADDED, text
    text = text.partition("#")[0]
    yield SpellingStep.FRAGMENT, text
    found = _PARTS.fullmatch(text)
    if found is not None:
        scheme, host, path, query = found[1].lower(), found[2], found[3], found[4]
        yield SpellingStep.SCHEME_CASE, f"{scheme}://{host}{path}{query}"
        host = host.lower()
        yield SpellingStep.HOST_CASE, f"{scheme}://{host}{path}{query}"
        host = _ascii_host(host)
        yield SpellingStep.HOST_ASCII, f"{scheme}://{host}{path}{query}"
        host = host.removesuffix(f":{_PORTS.get(scheme, '')}")
        yield SpellingStep.DEFAULT_PORT, f"{scheme}://{host}{path}{query}"
        yield SpellingStep.DOT_SEGMENTS, f"{scheme}://{host}{_without_dots(path)}{query}"
    yield SpellingStep.WRITTEN_OUT, url.fetch


def _ascii_host(host: str) -> str:
    """Return host and port with the host in its DNS (ASCII) form; an ASCII host stays unchanged."""
    if host.isascii() and "%" not in host:
        return host
    name, colon, port = host.partition(":")
    try:
        return f"{whatwg.URL.parse(f'https://{name}/').host_str}{colon}{port}"
    except (whatwg.URLError, ValueError):
        return host


def _without_dots(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for number, segment in enumerate(segments):
        dots = len(_DOT.findall(segment)) if _DOT.sub("", segment) == "" else 0
        if dots == 2 and len(kept) > 1:
            kept.pop()
        if dots not in (1, 2):
            kept.append(segment)
        elif number == len(segments) - 1:
            # `/a/.` and `/a/..` name directories.
            kept.append("")
    return "/".join(kept)


def _to_normalised(url: Url, policy: Normalisation) -> Iterator[tuple[SpellingStep, str]]:
    end = url.fetch.index("/", 8)
    yield SpellingStep.FINAL_DOT, url.origin + url.fetch[end:]
    prefix = url.normalised[: url.normalised.index("/", 8)]
    yield SpellingStep.HTTPS, prefix + url.fetch[end:]
    for name, rest in sites_of(policy).spelling.steps(url.fetch[end:]):
        yield SpellingStep(name), prefix + rest
