"""The plan of a dry run: what would be done, as a person reads it. Nothing is touched, Docker least of all."""

from __future__ import annotations

import shlex
from pathlib import Path

from holdfast.archive_tool.browsertrix import MANAGED_NAME
from holdfast.archive_tool.capture import crawl_command
from holdfast.archive_tool.docker import crawl_arguments, prepare_launch
from holdfast.archive_tool.modes import Mode
from holdfast.archive_tool.options import Backend, Options
from holdfast.archive_tool.resume import RESUME_NAME
from holdfast.archive_tool.survey import Survey


def describe_plan(options: Options, found: Survey, workers: int) -> str:
    """Return the plan, one fact a line, the command last."""
    watch = options.watch
    adaptive = [
        word
        for word, wanted in (
            ("workers", watch.adaptive_workers), ("VPN rotation", watch.vpn), ("restart", watch.adaptive_restart),
        )
        if wanted
    ]  # fmt: skip
    last = found.statistics
    facts = {
        "name": options.name,
        "seeds": " ".join(options.seeds),
        "output directory": str(options.output_dir),
        "capture backend": options.backend.value,
        "run mode": found.mode.value if found.mode else f"none: {options.zim_path.name} exists",
        "reset first": found.reset or "no",
        "earlier": f"{len(found.temp_dirs)} temporary directories, {found.warcs} WARC files",
        "last statistics": f"{last.crawled} of {last.total} crawled" if last else "none",
        "workers": str(workers),
        "monitoring": f"every {watch.interval_s:g} s, stalled after {watch.stall_s:g} s" if watch.enabled else "off",
        "adaptive": ", ".join(adaptive) or "nothing",
        "fallback": options.recovery.fallback.value if options.recovery.fallback else "none",
        "final build": options.zim_path.name if options.wants_build else "skipped",
        "command": shlex.join(_command(options, found, workers)),
    }
    return "\n".join([*(f"{name}: {value}" for name, value in facts.items()), "dry run: nothing was started"])


def _command(options: Options, found: Survey, workers: int) -> list[str]:
    if options.backend is not Backend.BROWSERTRIX:
        return crawl_command(options)
    config: Path | None = None
    if found.mode is Mode.RESUME and found.reset is None:
        config = options.output_dir / RESUME_NAME
    elif options.managed_config is not None:
        config = options.output_dir / MANAGED_NAME
    return list(prepare_launch(options, crawl_arguments(options, workers, config)).command)
