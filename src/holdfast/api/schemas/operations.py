"""Requests for operations: verifications and rebuilds."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import MAX_ID, RequestForm


class VerificationForm(RequestForm):
    """The files to verify, and how thoroughly."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example", "quick": False}]})

    source: str | None = Field(None, max_length=64, description="Only files of this source.")
    execution: int | None = Field(None, ge=0, le=MAX_ID, description="Only files of this execution.")
    quick: bool = Field(False, description="Only compare sizes; no file is read.")


class IndexRebuildForm(RequestForm):
    """The files to read again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example"}]})

    source: str | None = Field(None, max_length=64, description="Only files of this source; all by default.")
