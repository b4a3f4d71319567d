"""`holdfast settings`: the current settings and their meaning. Secrets are never printed."""

from __future__ import annotations

from contextlib import nullcontext

from holdfast.cli.printing import Done, runnable
from holdfast.config import Settings
from holdfast.config.showing import shown_text, walk


@runnable(opened=nullcontext, example="settings --json")
def settings(values: Settings) -> Done:
    """Print the current settings."""
    rows = [(name, getattr(group, key), field) for name, group, key, field in walk(values)]
    # Redact text in both forms: a database URL may contain a password.
    plain = {name: value if isinstance(value, int | float) else shown_text(value) for name, value, _ in rows}
    return Done(plain, [f"{name} = {shown_text(value)}\n    {field.description}" for name, value, field in rows])
