"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Home = Annotated[Path | None, typer.Option("--home", help="Data directory (HOLDFAST_HOME; default ./holdfast-home).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ExecutionId = Annotated[int | None, typer.Argument(help="An execution's number; the latest if left out.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only say what would be done.")]
