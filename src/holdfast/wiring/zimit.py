"""What a zimit crawl is run with: the source's configuration, and what this machine's settings add to it."""

from __future__ import annotations

from dataclasses import replace

from holdfast.archive_tool.contract import Host, JobConfig, read_job_config
from holdfast.archive_tool.manners import manner_flags, with_robots, within_time
from holdfast.archive_tool.refusals import ToolConfigRefused
from holdfast.archive_tool.scope_flags import scope_flags
from holdfast.config import Settings
from holdfast.sources.config import SourceConfig, zimit_job


def zimit_config(config: SourceConfig, settings: Settings) -> JobConfig:
    """Return the checked configuration of a zimit crawl; ToolConfigRefused names the field that is wrong.

    Scope, rules, depth, pages, delay and quota of the source become zimit's flags, where it gives none itself, and
    robots.txt a setting of the browser in it. No run takes longer than a worker's run may, whatever the source says.
    Permissions are loosened where nothing else is said and the environment is not strict.
    """
    host, content = Host.of(settings.zimit), zimit_job(config)
    most_s = settings.worker.max_time_s or None
    limits = [limit for limit in (config.max_time_s, most_s) if limit]
    config = replace(config, max_time_s=min(limits, default=None))
    try:
        options = with_robots(config, {"relax_perms": not settings.api.strict, **content["tool_options"]})
        flags = [
            *scope_flags(config, settings.contact, host.extra_flags),
            *manner_flags(config, host.extra_flags),
            *within_time(content["zimit_passthrough_args"], most_s, host.extra_flags),
        ]
        return read_job_config({**content, "tool_options": options, "zimit_passthrough_args": flags}, host)
    except ToolConfigRefused as exc:
        raise exc.below("zimit") from exc
