"""Sources as operators see them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from holdfast.records import Operator, record
from holdfast.withdrawals.viewers import Visibility


@record
class SourceRecord:
    """A source with the settings that differ from the defaults."""

    id: Operator[int]
    code: Operator[str]
    name: Operator[str]
    base_url: Operator[str | None]
    description: Operator[str | None]
    enabled: Operator[bool]
    visibility: Operator[Visibility]
    """Access to its captures."""
    schedule: Operator[str]
    """The schedule in words; once: only when an operator starts it."""
    has_run: Operator[bool]
    """Whether it has run: its code is fixed then, because links and files contain it."""
    config: Operator[Annotated[dict[str, Any], "SourceConfiguration"]]
    """Settings that differ from the defaults."""
    warnings: Operator[list[str]]
    """Questionable settings, or why the configuration is no longer valid."""
    created_at: Operator[datetime]
    updated_at: Operator[datetime]

    @property
    def backend(self) -> str:
        """The crawler that it uses."""
        return str(self.config.get("backend", "native"))


@record
class SwitchedSource(SourceRecord):
    """A source that was enabled or disabled."""

    jobs: Operator[int]
    """Jobs that are resumed or paused with the source."""


@record
class SourceName:
    """A source to choose from a list."""

    id: Operator[int]
    code: Operator[str]
    name: Operator[str]
    enabled: Operator[bool]
    is_yearly: Operator[bool]
    """Whether it is crawled once a year."""


@record
class SourceList:
    """A page of sources, by code."""

    sources: Operator[list[SourceRecord]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]


@record
class SourceImport:
    """The result of an import, or of its dry run; sources by code."""

    created: Operator[list[str]]
    updated: Operator[list[str]]
    unchanged: Operator[list[str]]
    dry_run: Operator[bool]
