"""The responses of a bundled website to each path, the same for the live server and for earlier crawls."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus

from holdfast.values import dataclass

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml; charset=utf-8",
    ".rss": "application/rss+xml; charset=utf-8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    status: HTTPStatus = HTTPStatus.OK
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_page(self) -> bool:
        return self.status == HTTPStatus.OK and self.headers.get("Content-Type", "").startswith("text/html")

    def head(self) -> bytes:
        """Return status line and headers as sent, with the final empty line."""
        lines = [f"HTTP/1.1 {self.status.value} {self.status.phrase}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join((*lines, "", "")).encode()


def stored(body: bytes, suffix: str) -> SiteAnswer:
    """Return the response for an existing file, with a validator."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    return SiteAnswer(body=body, headers={"Content-Type": TYPES[suffix], "ETag": etag})


def moved(path: str) -> SiteAnswer:
    """Return a permanent redirect."""
    return SiteAnswer(status=HTTPStatus.MOVED_PERMANENTLY, headers={"Location": path})


def refused(status: HTTPStatus, page: str) -> SiteAnswer:
    """Return an error response with a page that explains it."""
    return SiteAnswer(status=status, body=page.encode(), headers={"Content-Type": TYPES[".html"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteContent:
    """A whole website at one point in time."""

    answers: Mapping[str, SiteAnswer]
    missing: SiteAnswer
    """The response for every other path."""

    def at(self, target: str) -> SiteAnswer:
        # Looked up in a table, never joined to a folder: no request can leave the bundle.
        return self.answers.get(target.split("?", 1)[0], self.missing)

    @property
    def pages(self) -> list[str]:
        """The path of every page, including those that robots.txt forbids."""
        return sorted(path for path, answer in self.answers.items() if answer.is_page)


def sitemap(addresses: Mapping[str, str | None]) -> bytes:
    """Return a sitemap of addresses, each with the date of its last change if known."""
    entries = "".join(
        f"  <url><loc>{address}</loc>{f'<lastmod>{day}</lastmod>' if day else ''}</url>\n"
        for address, day in addresses.items()
    )
    opening = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{opening}\n{entries}</urlset>\n'.encode()
