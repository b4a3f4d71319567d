"""Every group of pages, by the first segment of its path, and the zoo: one page with a link to each of them."""

from tests.site.book import Group, Page, html, links
from tests.site.pages.assets import assets
from tests.site.pages.cache import cache
from tests.site.pages.charset import charset
from tests.site.pages.cookie import cookie
from tests.site.pages.encoding import encoding
from tests.site.pages.feed import feed
from tests.site.pages.framing import framing
from tests.site.pages.head import head
from tests.site.pages.markup import markup
from tests.site.pages.media import media
from tests.site.pages.meta import meta
from tests.site.pages.redirect import redirect
from tests.site.pages.robots import robots
from tests.site.pages.sitemap import sitemap
from tests.site.pages.slow import slow
from tests.site.pages.status import status
from tests.site.pages.trap import trap
from tests.site.wire import Exchange

ROBOTS = robots
zoo = Group("zoo", "indexes of all this")

GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        slow, framing, encoding, head, redirect, cookie, status, cache, markup, charset, meta, assets, media, trap,
        sitemap, feed, robots, zoo,
    )
}  # fmt: skip


def every_page() -> list[Page]:
    """Return all pages of all groups, in the order of the README."""
    return [page for group in GROUPS.values() for page in group.pages.values()]


@zoo.page("all", "a link to every page of every group")
async def everything(exchange: Exchange) -> None:
    await exchange.reply(html("The zoo", links(page.path for page in every_page())))


@zoo.page("group", "a link to every page of one group: /zoo/group/slow")
async def one_group(exchange: Exchange) -> None:
    group = GROUPS.get(exchange.rest)
    pages = group.pages.values() if group else ()
    await exchange.reply(html(f"The zoo: {exchange.rest}", links(page.path for page in pages)))
