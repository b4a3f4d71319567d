"""Commands of the open archive (`printing` explains what they return)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast.cli import printing
from holdfast.cli.printing import Done, Listing, Rows
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.processes.runfile import step_back
from holdfast.wiring.archive import open_archive

__all__ = ["Done", "Listing", "OpenDatabase", "Reading", "Rows", "Writing", "command", "runnable"]

Reading = Annotated[Session, lambda opened: opened.database.read()]
OpenDatabase = Annotated[Database, lambda runtime: closing(Database(runtime.settings.database))]
Writing = Annotated[Session, lambda opened: opened.database.write()]
_DERIVED = "Acts at once: it writes derived data, which can be rebuilt."
runnable = partial(printing.runnable, opened=open_archive)


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    opened: printing.Opener = open_archive,
    is_derived: bool = False,
    **declared: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a command as `printing.command` does; one that only derives data gives way to crawls and readers."""

    @contextmanager
    def open_at_low_priority(settings: Settings) -> Iterator[Any]:
        step_back(settings.index.nice)
        with opened(settings) as archive:
            yield archive

    if is_derived:
        return printing.command(app, name, opened=open_at_low_priority, note=_DERIVED, **declared)
    return printing.command(app, name, opened=opened, **declared)
