"""What can be wrong with a question to the CDX server."""

from __future__ import annotations

from holdfast.errors import Invalid


class BadCdxParameter(Invalid):
    """A parameter of a CDX query cannot be used."""

    code = "bad_cdx_parameter"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the parameter {name} cannot be used: {reason}; docs/cdx.md lists them")
        self.name, self.reason = name, reason
