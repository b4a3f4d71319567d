"""The answer that says what can be exported."""

from __future__ import annotations

from holdfast.api.schemas.base import Answer


class ExportKind(Answer):
    """One kind of export."""

    path: str
    description: str
    formats: list[str]


class Exports(Answer):
    """What can be exported, and how much at once."""

    enabled: bool
    formats: list[str]
    default_limit: int
    max_limit: int
    data_dictionary_url: str | None
    snapshots: ExportKind
    changes: ExportKind
    cdxj: ExportKind
