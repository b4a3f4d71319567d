"""How loud a command is: quiet, unless the settings say otherwise."""

from __future__ import annotations

from holdfast import log
from holdfast.config import Settings


def configure_log(settings: Settings, *, unless_set: str = "WARNING", as_json: bool = True) -> None:
    """Configure the log of a command that tells its results itself: HOLDFAST_LOG_LEVEL counts where it is set."""
    level = settings.log_level if "log_level" in settings.model_fields_set else unless_set
    log.configure(level, as_json=as_json)
