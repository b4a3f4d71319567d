"""The table of pages: a group a file, a line a page, each with the sentence that the README prints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from tests.site.wire import Exchange

Handler = Callable[[Exchange], Awaitable[None]]


class Page(NamedTuple):
    """One address of the site and what is wrong with it."""

    path: str
    story: str
    handler: Handler
    sample: str
    """A query that shows the page at once, where its defaults are slow or large."""


class Group:
    """The pages below one path; a page also answers for everything below its own."""

    def __init__(self, name: str, story: str) -> None:
        self.name, self.story = name, story
        self.pages: dict[str, Page] = {}

    def add(self, name: str, story: str, handler: Handler, *, sample: str = "") -> None:
        """Put a page into the table; two of one name are a mistake."""
        if name in self.pages:
            raise ValueError(f"/{self.name}/{name} stands twice in the table of pages")
        self.pages[name] = Page(f"/{self.name}/{name}", story, handler, sample)

    def page(self, name: str, story: str, *, sample: str = "") -> Callable[[Handler], Handler]:
        """Decorate a handler: `@slow.page("body", "one byte at a time")`."""

        def put(handler: Handler) -> Handler:
            self.add(name, story, handler, sample=sample)
            return handler

        return put

    def raw(self, name: str, story: str, data: bytes) -> None:
        """Add a page that sends these bytes as they are, head and all, and closes."""

        async def handler(exchange: Exchange) -> None:
            await exchange.send(data)

        self.add(name, story, handler)

    def fixed(
        self,
        name: str,
        story: str,
        body: bytes | str,
        *,
        status: int = 200,
        headers: Iterable[tuple[str, str]] = (),
        media: str | None = "text/html; charset=utf-8",
    ) -> None:
        """Add a page that gives one well-framed answer."""
        kept = tuple(headers)

        async def handler(exchange: Exchange) -> None:
            await exchange.reply(body, status=status, headers=kept, media=media)

        self.add(name, story, handler)


def html(title: str, body: str = "", *, head: str = "") -> str:
    """Return a small ordinary page, so that a client has something to parse around the oddity."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}</head>\n'
        f"<body><h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def links(addresses: Iterable[str]) -> str:
    """Return one anchor a line."""
    return "\n".join(f'<p><a href="{address}">{address}</a></p>' for address in addresses)
