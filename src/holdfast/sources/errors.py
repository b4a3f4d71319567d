"""The errors of this room: which field of a source cannot be used, and what stands in the way of a change."""

from __future__ import annotations

from holdfast.errors import Conflict, Invalid, NotFound


class SourceRefused(Invalid):
    """A source cannot be kept like this; `field` says which part of it is wrong."""

    code = "source_refused"

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class SourceNotFound(NotFound):
    """There is no source with this code."""

    code = "source_not_found"

    def __init__(self, code: str) -> None:
        super().__init__(f"there is no source {code[:40]!r}; see them with: holdfast source list")


class SourceTaken(Conflict):
    """The code of a new source belongs to another one."""

    code = "source_taken"

    def __init__(self, code: str) -> None:
        super().__init__(f"there is a source {code!r} already; edit it, or choose another code")


class SourceInUse(Conflict):
    """A source that jobs, captures or editions belong to cannot be deleted."""

    code = "source_in_use"

    def __init__(self, code: str, what: str) -> None:
        super().__init__(
            f"the source {code!r} has {what}, which stay; disable it instead: holdfast source disable {code}"
        )
