"""The page of the HTTP API: what is said by hand, and every route from the OpenAPI document."""

from __future__ import annotations

import json
import tempfile
from http import HTTPStatus
from itertools import groupby
from pathlib import Path
from typing import Any

from holdfast.api.app import create_inner_app
from holdfast.api.routes.reference import DocumentedRoute, operations
from holdfast.config import Settings
from holdfast.wiring.archive import open_archive

INTRO = Path(__file__).with_name("api_intro.md")
ANYWHERE = {str(code): HTTPStatus(code).phrase for code in (400, 401, 403, 414, 422, 429, 500, 503)}


def document() -> dict[str, Any]:
    """Return the OpenAPI document of a server with nothing set."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(_env_file=None, home=Path(folder))  # type: ignore[call-arg]
        with open_archive(settings) as archive:
            return create_inner_app(archive).openapi()


def openapi_text() -> str:
    """Return the document as it is committed: the same bytes on every machine."""
    return json.dumps(document(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def api_page() -> str:
    """Return the page."""
    told = list(operations(document()))
    parts = [INTRO.read_text()]
    for group, members in groupby(sorted(told, key=lambda one: one.group), key=lambda one: one.group):
        parts.append(f"## {group.capitalize()}\n")
        parts += [_described(operation) for operation in members]
    return "\n".join(parts)


def _described(operation: DocumentedRoute) -> str:
    lines = [f"### {operation.verb} `{operation.path}`\n", f"{operation.description} ({operation.permission})\n"]
    if operation.parameters:
        lines.append("| name | where | type | meaning |\n|---|---|---|---|")
        for given in operation.parameters:
            name = f"`{given.name}`{' (required)' if given.is_required else ''}"
            lines.append(f"| {name} | {given.place} | {given.kind} | {given.description} |")
        lines.append("")
    if operation.answer:
        lines.append(f"Answers with {', '.join(f'`{name}`' for name in operation.answer)}.\n")
    own = [status for status, told in operation.statuses if ANYWHERE.get(status) != told]
    lines.append(f"Statuses: {', '.join(sorted(own))}.\n")
    return "\n".join(lines)
