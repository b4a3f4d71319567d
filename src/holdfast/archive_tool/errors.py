"""The errors of `archive-tool`: what an operator asked for that cannot be, and what broke under a run."""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import Conflict, Invalid, Unavailable


class ToolConfigRefused(Invalid):
    """A crawl's configuration cannot be used; `field` says which part of it. Retrying changes nothing."""

    code = "tool_config_refused"
    field: str

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason

    def below(self, group: str) -> ToolConfigRefused:
        """Return the same refusal with its field as a source's configuration names it: zimit.passthrough_args."""
        made = ToolConfigRefused(f"{group}.{self.field.removeprefix(f'{group}_')}", self.reason)
        made.code = self.code
        return made


class FlagRefused(ToolConfigRefused):
    """A flag that is not on the list of those that may reach zimit."""

    code = "zimit_flag_refused"

    def __init__(self, flag: str, reason: str) -> None:
        # "unrecognized arguments" is the phrase by which a configuration error is told from a failed crawl.
        super().__init__("zimit_passthrough_args", f"unrecognized arguments: {flag[:200]!r} ({reason})")
        self.flag = flag


class OutputBusy(Conflict):
    """Another archive-tool works in this output directory."""

    code = "output_busy"

    def __init__(self, output_dir: Path) -> None:
        super().__init__(f"another archive-tool works in {output_dir}; wait for it, or stop it")


class ZimExists(Conflict):
    """The ZIM file that this run would build is there already."""

    code = "zim_exists"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} exists; pass --overwrite to build it anew, or --skip-final-build to need none")


class StoreMissing(Unavailable):
    """The storage that should hold this crawl is not there; nothing was written in its place."""

    code = "store_missing"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"the storage at {path} is gone or not writable ({reason}); mount it, and run this again")


class StateUnwritable(Unavailable):
    """The state of a run cannot be kept, so the run does not go on."""

    code = "state_unwritable"

    def __init__(self, path: Path, exc: OSError) -> None:
        super().__init__(f"cannot write {path} (errno {exc.errno}: {exc.strerror}); mend that, and run this again")


class CaptureUnavailable(Unavailable):
    """This capture backend cannot run here."""

    code = "capture_backend_unavailable"


class StableNameTaken(Conflict):
    """A different file has the name under which a WARC file should be kept."""

    code = "stable_name_taken"
