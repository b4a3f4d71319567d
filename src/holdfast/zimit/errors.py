"""Errors of `archive-tool`: invalid requests by an operator, and failures during a run."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import Conflict, Invalid, Unavailable


class ToolConfigRefused(Invalid):
    """A crawl's configuration is invalid; `field` names the invalid part. Retrying does not help."""

    code = "tool_config_refused"
    field: str

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason

    def below(self, group: str) -> ToolConfigRefused:
        """Return the same error with its field as in a source's configuration: `zimit.passthrough_args`."""
        made = ToolConfigRefused(f"{group}.{self.field.removeprefix(f'{group}_')}", self.reason)
        made.code = self.code
        return made


class FlagRefused(ToolConfigRefused):
    """The flag is not on the list of flags that may be passed to zimit."""

    code = "zimit_flag_refused"

    def __init__(self, flag: str, reason: str) -> None:
        # "unrecognized arguments" is the phrase that distinguishes a configuration error from a failed crawl.
        super().__init__("zimit_passthrough_args", f"unrecognized arguments: {flag[:200]!r} ({reason})")


class ToolMissing(Invalid):
    """The command that runs zimit crawls cannot be started; retrying does not help."""

    code = "tool_missing"

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"cannot run {command[:200]!r}: {reason}; set HOLDFAST_ZIMIT_COMMAND, or install it")


class DockerMissing(Unavailable):
    """The container engine does not respond."""

    code = "docker_missing"


class OutputBusy(Conflict):
    """Another archive-tool process uses this output directory."""

    code = "output_busy"


class ZimExists(Conflict):
    """The ZIM file that this run would build already exists."""

    code = "zim_exists"


class StoreMissing(Unavailable):
    """The storage for this crawl is missing; nothing was written in its place."""

    code = "store_missing"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the storage at {path} is gone or not writable ({reason}); mount it, and run this again")


class StateUnwritable(Unavailable):
    """The state of a run cannot be saved, so the run stops."""

    code = "state_unwritable"


class CaptureUnavailable(Unavailable):
    """This capture backend cannot run here."""

    code = "capture_backend_unavailable"


class StableNameTaken(Conflict):
    """A different file already has the stable name of a WARC file."""

    code = "stable_name_taken"
