"""`holdfast url`: how a URL is parsed. It sends no request; an invalid URL is rejected."""

from __future__ import annotations

from json import dumps
from typing import Annotated

import typer

from holdfast.cli.runner import example
from holdfast.errors import UrlRefused
from holdfast.urls import parse_seed, priority


@example("url 'https://EXAMPLE.org/a/../b?utm_source=x'")
def url(
    urls: Annotated[list[str], typer.Argument(help="URLs; https without a scheme.", metavar="URL")],
    json: Annotated[bool, typer.Option("--json", help="One object for one URL, an array for several.")] = False,
) -> None:
    """Show each URL's normalised form, SURT key, hash, group, and its priority by spelling alone."""
    shown: list[dict[str, str | int]] = []
    refused = False
    for text in urls:
        try:
            parsed = parse_seed(text)
        except UrlRefused as exc:
            typer.echo(f"holdfast: {exc}", err=True)
            refused = True
            continue
        shown.append(
            {
                "url": text,
                "normalised": parsed.normalised,
                "key": parsed.key,
                "url_hash": parsed.url_hash,
                "group": parsed.group,
                "priority": priority(parsed.normalised, None),
            }
        )
    # Print one object for one URL, so that scripts need no index.
    if json and (shown or len(urls) > 1):
        typer.echo(dumps(shown[0] if len(urls) == 1 else shown, indent=2))
    elif shown:
        typer.echo("\n\n".join(map(_lines, shown)))
    if refused:
        raise typer.Exit(1)


def _lines(facts: dict[str, str | int]) -> str:
    return "\n".join(f"{name:<11} {value}" for name, value in facts.items() if name != "url")
