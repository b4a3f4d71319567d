"""Names of jobs and where they stand: from a template and a moment, never from anything that could leave the root."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

from holdfast.archive_tool.refusals import ToolConfigRefused

_DATE = re.compile(r"\{date(?::(%[A-Za-z](?:[-_]?%[A-Za-z])*))?\}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def job_name(template: str, now: datetime) -> str:
    """Return the name that a template gives at a moment, in UTC: `hc-{date:%Y%m%d}` becomes `hc-20251209` (HA-022).

    Only `{date}` is known; ToolConfigRefused if the result is no plain word.
    """
    moment = now.astimezone(UTC)
    name = _DATE.sub(lambda match: moment.strftime(match.group(1) or "%Y%m%d"), template)
    return _checked("name_template", name)


def job_directory(root: Path, code: str, name: str, now: datetime) -> Path:
    """Return where a job's output goes: `<root>/<code>/<moment>__<name>`; nothing is made yet."""
    moment = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    return root / _checked("source", code) / f"{moment}__{_checked('name', name)}"


def _checked(field: str, word: str) -> str:
    if not _WORD.fullmatch(word):
        raise ToolConfigRefused(field, f"{word!r:.100} is not made of letters, digits, dots and dashes")
    return word
