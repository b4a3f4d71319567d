"""Access rights of a command, set once before it runs; separate from `runner`, which imports no database code."""

from __future__ import annotations

from holdfast.db.schema import open_only_existing
from holdfast.withdrawals.viewers import see_everything


def prepare(*, sees_everything: bool, starts_archive: bool) -> None:
    """Set what a command may see, and whether it may create a database that does not exist."""
    if sees_everything:
        see_everything()
    if not starts_archive:
        open_only_existing()
