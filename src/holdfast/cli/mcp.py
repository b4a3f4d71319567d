"""`holdfast mcp`: the archive as read-only tools for assistants, over standard input and output or over HTTP."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from holdfast import config, log
from holdfast.assistants.server import serve_stdio
from holdfast.assistants.tools import ToolArchive
from holdfast.auth.principal import ANONYMOUS, Principal, SignInWay
from holdfast.auth.roles import Role
from holdfast.cli.api import configured, serve
from holdfast.cli.parameters import Home
from holdfast.cli.runner import example
from holdfast.search.search import SearchService
from holdfast.wiring.archive import open_archive

_APPLICATION = "holdfast.api.tools_app:application"


@example("mcp --as member")
def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP at /mcp; each request shows an API token.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="With --http: address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With --http: port (8060); 0 is any free one.")
    ] = None,
    viewer: Annotated[
        Role, typer.Option("--as", help="Without --http: in whose role the tools look.")
    ] = Role.ANONYMOUS,
    home: Home = None,
) -> None:
    """Serve search, history, text, comparison and explanation to an assistant; nothing can be changed.

    Without --http, the assistant starts this command and talks to it over standard input and output. It sees public
    captures; --as member shows members' pages, --as operator what operators see, too.
    """
    if http:
        settings = configured(home=str(home) if home else None, host=host, port=port)
        log.configure(settings.log_level)
        serve(settings, application=_APPLICATION, ready=lambda address: print(f"serving {address}/mcp", flush=True))
        return
    settings = config.load(home=home)
    # Standard output belongs to the protocol: log to standard error, as everywhere.
    log.configure(settings.log_level, as_json=not sys.stderr.isatty())
    local = Principal(role=viewer, name="local", way=SignInWay.LOCAL)
    principal = ANONYMOUS if viewer is Role.ANONYMOUS else local
    with open_archive(settings) as archive:
        search = SearchService(archive.database, archive.home, archive.clock)
        asyncio.run(serve_stdio(ToolArchive(archive=archive, search=search), principal))
