"""YAML in and out, plain values only; the one user of PyYAML. Objects, broken text and huge files are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MAX_BYTES = 64 * 1024 * 1024
"""A saved Browsertrix queue of 300,000 addresses takes about 40 MB."""


def read_mapping(path: Path) -> dict[str, Any] | None:
    """Return the mapping that a file holds, or None if it holds none: missing, half-written, too large, no mapping."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        content = _LOADER(path.read_bytes()).get_single_data()
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not content:
        return None
    return {str(key): value for key, value in content.items()}


def as_text(content: dict[str, Any]) -> str:
    """Return a mapping as YAML; keys keep their order."""
    text: str = yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text
