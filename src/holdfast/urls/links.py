"""Resolves, normalises and hashes the references of one page; runs for every page. Never raises, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from url import URL, URLError

from holdfast.urls.address import MAX_URL_CHARS, Url, hash64, hash64_all, host_problem, parse
from holdfast.urls.sites import DEFAULT, Normalisation, Site, sites_of

# Pages of a site share most of their links, and a crawl requests them in sequence: a link in a known spelling costs a
# twentieth of a new one, one in another spelling a third. Bounded by number and length to some 8 MB per policy.
_REMEMBERED_LINKS: Final = 16_384
_REMEMBERED_CHARS: Final = 512


class ResolvedLink(NamedTuple):
    fetch: str
    normalised: str
    hash64: int
    domain: str
    host: str
    scheme: str


class Resolution(NamedTuple):
    links: list[ResolvedLink]
    dropped: int
    """References that are not requestable URLs; repeats are not counted."""


class _Memory:
    """Cache of links: by the parser's output, and by the text written on the pages of a place."""

    __slots__ = ("_count", "met", "places")

    def __init__(self) -> None:
        self.met: dict[str, ResolvedLink] = {}
        self.places: dict[str, dict[str, ResolvedLink]] = {}
        """By site for what begins at its root, by directory for what begins there."""
        self._count = 0

    def keep(self, met: dict[str, ResolvedLink]) -> None:
        """Cache URLs; the cache is emptied when it is full."""
        short = {fetch: link for fetch, link in met.items() if len(fetch) <= _REMEMBERED_CHARS}
        # Clear the whole cache at once, which needs no order of use.
        if len(self.met) + len(short) > _REMEMBERED_LINKS:
            self.met = {}
        if len(short) <= _REMEMBERED_LINKS:
            self.met.update(short)

    def keep_written(self, site: str, directory: str, written: dict[str, ResolvedLink]) -> None:
        """Cache the targets of references for all pages of a site, or of a directory.

        Except those whose meaning depends on their own page, such as `?page=2`, and those in `met`.
        """
        short = [
            (href, link) for href, link in written.items() if len(href) <= _REMEMBERED_CHARS and href != link.fetch
        ]
        self._keep_at(site, {href: link for href, link in short if href[:1] == "/"})
        self._keep_at(directory, {href: link for href, link in short if href[:1] == "." or href[:1].isalnum()})

    def _keep_at(self, place: str, written: dict[str, ResolvedLink]) -> None:
        if not written:
            return
        self._count += len(written) + 1
        if self._count > _REMEMBERED_LINKS:
            self.places, self._count = {}, len(written)
        if len(written) <= _REMEMBERED_LINKS:
            self.places.setdefault(place, {}).update(written)


@lru_cache(maxsize=32)
def _memory_of(policy: Normalisation) -> _Memory:
    return _Memory()


def _after_many_slashes(join: Callable[[str], URL], href: str) -> str:
    """Return the URL in `///host/path`, or nothing: the standard ignores slashes beyond two, our parser does not."""
    bare = href.strip().lstrip("/")
    try:
        return str(join(f"//{bare}")) if href.lstrip().startswith("///") else ""
    except (URLError, ValueError):
        return ""


_NONE: Final[dict[str, ResolvedLink]] = {}


class Base:
    """Base for resolving the references of one page."""

    __slots__ = ("_base", "_directory", "_memory", "_site", "_sites", "url")

    def __init__(self, url: str | Url, href: str | None = None, policy: Normalisation = DEFAULT) -> None:
        """Set the page's own URL and the href of its base element, which is ignored if invalid.

        Raise `UrlRefused` if the page's URL is invalid.
        """
        self.url = written = (url if isinstance(url, Url) else parse(url, policy)).fetch
        self._base: URL | None = None
        if href is not None and len(href) <= MAX_URL_CHARS:
            page = URL.parse(self.url)
            try:
                joined = page.join(href)
            except (URLError, ValueError):
                joined = page
            if joined.scheme in ("http", "https"):  # `file:` and the like would take every link of the page with them
                self._base, written = joined, str(joined)
        self._site = written[: written.find("/", 8)]
        path = written.partition("?")[0].partition("#")[0]
        self._directory = path[: path.rindex("/") + 1]
        self._sites = sites_of(policy)
        self._memory = _memory_of(policy)

    def each(self, hrefs: list[str]) -> tuple[list[ResolvedLink | None], int]:
        """Return the target of each reference, None for an invalid one; and the number of invalid ones."""
        # The most common case in one C loop: other pages of the site contained all links of the page.
        links = list(map(self._memory.places.get(self._site, _NONE).get, hrefs))
        dropped = 0
        if None in links:
            read, dropped = self._read([href for href, link in zip(hrefs, links, strict=True) if link is None])
            links = [link or read.get(href) for href, link in zip(hrefs, links, strict=True)]
        return links, dropped

    def resolve(self, hrefs: Iterable[str]) -> Resolution:
        """Return the distinct targets of these references, in order, and the number of invalid ones."""
        links, dropped = self.each(list(hrefs))
        pages: dict[int, ResolvedLink] = {}
        for link in links:
            if link is not None:
                # Key by the hash of the normalised URL: two spellings of one page are one link.
                pages.setdefault(link[2], link)
        return Resolution(list(pages.values()), dropped)

    def _read(self, hrefs: list[str]) -> tuple[dict[str, ResolvedLink], int]:
        """Return the targets of references missing from the cache of a site's root, and the number of invalid ones."""
        known, near = self._memory.met.get, self._memory.places.get(self._directory, _NONE).get
        # A complete URL, spelled as the parser would, needs no parser.
        known_links = {href: link for href in hrefs if (link := near(href) or known(href)) is not None}
        if len(known_links) == len(hrefs):
            return known_links, 0
        written, dropped = self._written_out([href for href in hrefs if href not in known_links])
        links = {fetch: known(fetch) for fetch in written.values()}
        if new := [fetch for fetch, link in links.items() if link is None]:
            resolved = self._resolve_new(new)
            links |= resolved
            self._memory.keep(resolved)
            dropped += len(new) - len(resolved)
        fresh = {href: link for href, fetch in written.items() if (link := links[fetch]) is not None}
        self._memory.keep_written(self._site, self._directory, fresh)
        return known_links | fresh, dropped

    def absolute(self, href: str) -> str | None:
        """Return one absolute reference without its fragment, or None if it is not an http(s) URL.

        Host and port are not checked; `resolve` does that.
        """
        written, _ = self._written_out((href,))
        return next((fetch for fetch in written.values() if fetch.startswith(("https://", "http://"))), None)

    def _written_out(self, hrefs: Iterable[str]) -> tuple[dict[str, str], int]:
        """Return the WHATWG parser's serialisation of each reference, and the number it rejected."""
        written: dict[str, str] = {}
        dropped = 0
        if self._base is None:  # not before it is needed: all that most pages mention was met before
            self._base = URL.parse(self.url)
        join = self._base.join
        for href in hrefs:
            # The parser silently accepts a backslash or credentials that hide the host; most references have neither.
            if len(href) > MAX_URL_CHARS or (("@" in href or "\\" in href) and host_problem(href)):
                dropped += 1
                continue
            try:
                fetch = str(join(href))
            except (URLError, ValueError):
                fetch = _after_many_slashes(join, href)
                dropped += not fetch
            if "#" in fetch:
                fetch = fetch.partition("#")[0]
            if fetch:
                written[href] = fetch
        return written, dropped

    def _resolve_new(self, new: list[str]) -> dict[str, ResolvedLink]:
        """Return the URLs among the parser's output with their identities; hashing them together takes less time."""
        site_of, normalise = self._sites.get, self._sites.spelling.normalise
        spelled: list[tuple[str, str, Site]] = []
        for fetch in new:
            # Skip `mailto:` and the like, and URLs that became too long when resolved.
            if fetch[:4] != "http" or len(fetch) > MAX_URL_CHARS:
                continue
            start = fetch[: fetch.find("/", 8)]
            site = site_of(start)
            if isinstance(site, str):
                continue
            # Most URLs have neither query nor percent-escapes; the parser's output is then already normalised.
            plain = site.as_is and "?" not in fetch and "%" not in fetch
            spelled.append((fetch, fetch if plain else site.prefix + normalise(fetch[len(start) :]), site))
        hashes = hash64_all([normalised for _, normalised, _ in spelled])
        return {
            # This costs half of NamedTuple's constructor.
            fetch: tuple.__new__(ResolvedLink, (fetch, normalised, bits, site.domain, site.host, site.scheme))
            for (fetch, normalised, site), bits in zip(spelled, hashes, strict=True)
        }


def resolve(base: Base, hrefs: Iterable[str]) -> list[ResolvedLink]:
    return base.resolve(hrefs).links


MAX_EDGES = 200
_ASSETS = (
    ".css",
    ".js",
    ".mjs",
    ".json",
    ".xml",
    ".rss",
    ".ico",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".webp",
    ".svg",
    ".bmp",
    ".avif",
    ".woff",
    ".woff2",
    ".ttf",
    ".otf",
    ".eot",
    ".mp3",
    ".mp4",
    ".m4a",
    ".ogg",
    ".wav",
    ".webm",
    ".avi",
    ".mov",
    ".zip",
    ".gz",
    ".tar",
    ".7z",
    ".rar",
    ".exe",
    ".dmg",
    ".iso",
)


def group_hash(link: ResolvedLink) -> int:
    """Return the hash of a URL's group: the URL without its query."""
    group, query, _ = link.normalised.partition("?")
    return hash64(group) if query else link.hash64


def leading_out(links: Iterable[ResolvedLink], *, own_hash: int) -> list[tuple[int, ResolvedLink]]:
    """Return the links that lead from a group to other groups, each with the hash of its target group."""
    found = []
    for link in links:
        # Files embedded in a page are not pages it refers to, whatever element contains them.
        if link.normalised.partition("?")[0].lower().endswith(_ASSETS):
            continue
        to_hash = group_hash(link)
        if to_hash != own_hash:
            found.append((to_hash, link))
    return found


def edges_of(links: Iterable[tuple[int, ResolvedLink]], limit: int = MAX_EDGES) -> dict[int, ResolvedLink]:
    """Return the first link to each group, in order, at most `limit`."""
    found: dict[int, ResolvedLink] = {}
    for to_hash, link in links:
        if to_hash not in found:
            found[to_hash] = link
            if len(found) == limit:
                break
    return found
