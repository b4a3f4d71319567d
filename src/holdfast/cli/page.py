"""`holdfast page`: pages of sources that keep signals instead of bodies: found by keyword, shown in full."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.options import AsJson, Home
from holdfast.cli.wording import counted
from holdfast.crawl.signals.finding import find_pages, page_of
from holdfast.crawl.signals.queries import PageRow, Question
from holdfast.urls import parse
from holdfast.wiring.archive import open_archive

_SHOWN_WORDS = 20

app_command = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, no_args_is_help=True,
    help="Pages whose body is not kept: find them by keyword, show one. Example: holdfast page search vaccine",
)  # fmt: skip


@app_command.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words that a page must have all of.")],
    domain: Annotated[str | None, typer.Option(help="Only pages of this host.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Pages to show.")] = 20,
    offset: Annotated[int, typer.Option(min=0, max=100_000, help="Pages to pass over.")] = 0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Find pages that have all of these words; case and accents do not matter.

    Example: holdfast page search vaccine calendar --domain example.org
    """
    question = Question(domain=domain, limit=limit, offset=offset)
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        found = find_pages(session, " ".join(words), question)
    if json:
        pages = [page_object(row) for row in found.pages]
        print(jsonlib.dumps({"pages": pages, "total": found.total, "limit": limit, "offset": offset}))
        return
    for row in found.pages:
        typer.echo(f"{row.url}\n      {row.title or '(no title)'}")
    typer.echo(counted(found.total, "page") + (f", {len(found.pages)} shown" if found.total > len(found.pages) else ""))


@app_command.command()
def show(
    url: Annotated[str, typer.Argument(help="The page's address.")], json: AsJson = False, home: Home = None
) -> None:
    """Show what is kept of a page: title, language, keywords, links.

    Example: holdfast page show https://example.org/
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        found = page_of(session, parse(url))
    facts = page_object(found.page)
    if json:
        print(jsonlib.dumps({**facts, "keywords": dict(found.words), "links": list(found.links)}))
        return
    for name, value in facts.items():
        if value is not None:
            typer.echo(f"{name:<14} {value}")
    typer.echo(f"{'keywords':<14} {', '.join(word for word, _ in found.words[:_SHOWN_WORDS])}")
    for link in found.links:
        typer.echo(f"{'link':<14} {link}")


def page_object(row: PageRow) -> dict[str, Any]:
    """Return a page as JSON can hold it."""
    facts = row._asdict() | {"fetched_at": row.fetched_at.isoformat(), "url_hash": parse(row.url).url_hash}
    return facts
