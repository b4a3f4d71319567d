"""`holdfast settings`: what is in force, and what each setting means. Secrets are never printed."""

from __future__ import annotations

import json as jsonlib

from holdfast import config
from holdfast.cli.parameters import AsJson, Home
from holdfast.config.showing import shown_text, walk


def settings(json: AsJson = False, home: Home = None) -> None:
    """Print the settings in force.

    Example: holdfast settings --json
    """
    values = config.load(home=home)
    rows = [(name, getattr(group, key), field) for name, group, key, field in walk(values)]
    if json:
        # Text is redacted in both forms: a database address may carry a password.
        plain = {name: value if isinstance(value, int | float) else shown_text(value) for name, value, _ in rows}
        print(jsonlib.dumps(plain))
        return
    for name, value, field in rows:
        print(f"{name} = {shown_text(value)}\n    {field.description}")


app_command = settings
