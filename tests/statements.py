"""Statements that SQLAlchemy has translated to SQL, kept for all engines of a test run."""

from __future__ import annotations

from typing import Any

_MOST = 5000


class SharedStatements(dict[Any, Any]):
    """SQLAlchemy keeps them by engine and dialect object; here one engine finds what another of its kind has made.

    A third of the time of a test on a database went into translating the statements of the test before once more.
    """

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the translation of a statement."""
        return super().get(_of_kind(key), default)

    def __setitem__(self, key: Any, translated: Any) -> None:
        if len(self) >= _MOST:
            self.clear()
        super().__setitem__(_of_kind(key), translated)


def _of_kind(key: Any) -> tuple[Any, ...]:
    dialect, *statement = key
    return (type(dialect), dialect.server_version_info, *statement)
