"""Ordinary pages: a generated web in which every page can be reached, the same bytes at every request."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass, field

from tests.site.book import html
from tests.site.wire import Exchange

_TEXT = (
    "archive public health report measure water school record change policy page research season early river notice "
    "doctor travel vaccine child guide service family safety winter region science study result advice plan"
)
_WORDS = _TEXT.split()


def truth(pages: int) -> list[str]:
    """Return the path of every ordinary page of a host."""
    return ["/", *(f"/a/p{n}.html" for n in range(1, pages))]


@functools.cache
def _paragraphs() -> list[str]:
    """A small stock of text to build pages from; building it anew for each would be the slowest part of the site."""
    chance = random.Random(1)
    return [f"<p>{' '.join(chance.choices(_WORDS, k=60)).capitalize()}.</p>" for _ in range(64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSite:
    """What every host serves besides the table of pages."""

    hosts: list[str]
    pages: int
    rough: bool
    _paths: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_paths", {path: n for n, path in enumerate(truth(self.pages))})

    async def answer(self, exchange: Exchange) -> None:
        """Serve an ordinary page, or 404 for a path that is none."""
        number = self._paths.get(exchange.request.path)
        if number is None:
            await exchange.reply(html("Not found", "There is no such page."), status=404)
        elif self.rough and number % 17 == 5 and exchange.visits == 1:
            await exchange.reply(html("Busy"), status=503, headers=[("Retry-After", "1")])
        else:
            await exchange.reply(self.body(exchange, number))

    def body(self, exchange: Exchange, number: int) -> str:
        """Return page `number`: two links down a binary tree reach every page, the rest wander."""
        chance = random.Random(f"{exchange.host} {number}")
        paths = [f"/a/p{child}.html" for child in (2 * number + 1, 2 * number + 2) if child < self.pages]
        paths += [f"/a/p{chance.randrange(1, max(2, self.pages))}.html" for _ in range(4)] + ["/"]
        targets = list(paths) if self.pages > 1 else ["/"]
        if number % 5 == 3:
            targets.append(exchange.url("/", hosts_on=1))
        if self.rough and number % 7 == 2:
            targets.append("/redirect/other-host")
        anchors = "\n".join(f'<a href="{target}">{chance.choice(_WORDS)}</a>' for target in targets)
        text = "\n".join(chance.choices(_paragraphs(), k=6))
        return html(f"{exchange.host} page {number}", f"{anchors}\n{text}")
