"""The rules of an annual campaign: its date, the order of its sources, job names, and no caps. Pure functions.

Scope rules bound an annual crawl, never a number of pages or a depth: such caps are lifted here, and each is
noted in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.config import ZimitSettings
from holdfast.errors import Invalid
from holdfast.records import Operator, record
from holdfast.sources.config import UNLIMITED, SourceConfig
from holdfast.sources.registry import LANGUAGE_PATHS, PRESETS
from holdfast.values import dataclass
from holdfast.zimit.flags import annual_caps, below_minimum, check_job_config
from holdfast.zimit.passthrough import read_flags, words_of

FIRST_YEAR, LAST_YEAR = 1970, 2100
FULL_SITE, LEGACY, SEED_GROUP = "full_site", "legacy_full_site", "seed_group"
FULL_KEY, LEGACY_KEY = "full-site", "legacy-full-site"
# The `schedule_hint` of sources that a campaign includes when its request names none.
HINT: Final = "annual"
# Sources that ship with the product are queued first, in the order of their list.
_FIRST: Final = tuple(preset.code for preset in PRESETS)
LANGUAGES: Final = frozenset(LANGUAGE_PATHS.values())
_DEFAULT: Final = "the tool's default"


class CampaignRefused(Invalid):
    """An annual campaign cannot be planned with these values."""

    code = "campaign_refused"


def campaign_year(year: int | None, *, now: datetime) -> int:
    """Return the year of a campaign; default: the current year on 1 January, CampaignRefused on other days."""
    if year is None:
        # A timer that fires on 1 January needs no year; on another day, a wrong guess would create a whole campaign.
        if (now.month, now.day) != (1, 1):
            raise CampaignRefused("name the year with --year; it can be left out only on 1 January (UTC)")
        return now.year
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise CampaignRefused(f"the year must lie between {FIRST_YEAR} and {LAST_YEAR}, not {year}")
    return year


def campaign_date(year: int) -> datetime:
    """Return the time before which nothing of a campaign runs."""
    return datetime(year, 1, 1, tzinfo=UTC)


def in_order(codes: Iterable[str]) -> list[str]:
    """Return unique codes in queueing order: the presets in their order, then alphabetically."""
    return sorted(dict.fromkeys(codes), key=lambda code: (_FIRST.index(code) if code in _FIRST else len(_FIRST), code))


def job_name(code: str, year: int, key: str | None = None) -> str:
    """Return the name of a campaign's job: hc-20260101, and hc-20260101-lang-en for a shard."""
    return f"{code}-{year}0101" + (f"-{key}" if key else "")


def labels(year: int, *, version: str = "v1") -> dict[str, Any]:
    date = campaign_date(year)
    return {
        "campaign_kind": "annual",
        "campaign_year": year,
        "campaign_date": f"{date:%Y-%m-%d}",
        "campaign_date_utc": date.isoformat(),
        "scheduler_version": version,
    }


def language_of(url: str) -> str | None:
    """Return the language in the first part of a URL's path; None if it is not a language."""
    first = urlsplit(url).path.lstrip("/").partition("/")
    return LANGUAGE_PATHS.get(first[0].lower()) if first[1] else None


def shard_seeds(seeds: Iterable[str]) -> list[tuple[str, str]]:
    """Return each seed with the key of its shard: lang-en, lang-fr, else seed-<i>; a second lang-en is lang-en-2."""
    made: list[tuple[str, str]] = []
    taken: dict[str, int] = {}
    for number, seed in enumerate(seeds, 1):
        language = language_of(seed)
        key = f"lang-{language}" if language else f"seed-{number}"
        taken[key] = taken.get(key, 0) + 1
        # Shards are named like jobs, whose names must differ within a year.
        made.append((seed, key if taken[key] == 1 else f"{key}-{taken[key]}"))
    return made


def uncapped(config: SourceConfig, seeds: Iterable[str], host: ZimitSettings) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return an annual job's configuration (no caps, annual minima for zimit), and the settings lifted or raised.

    Raise ToolConfigRefused or FlagRefused if the source's zimit options do not work with what this `host` offers.
    """
    # The job gets its own copy of the seeds: editing the source during the campaign must not change the plan.
    overrides: dict[str, Any] = {"seeds": list(seeds), "max_depth": UNLIMITED, "max_pages": None}
    notes = []
    if config.max_depth != UNLIMITED:
        notes.append(f"max_depth {config.max_depth} lifted: an annual crawl is bounded by its scope")
    if config.max_pages is not None:
        notes.append(f"max_pages {config.max_pages} lifted: an annual crawl is bounded by its scope")
    # A quota protects the disk and the site and is no editorial limit, so it stays and is reported.
    if config.quota_bytes is not None:
        notes.append(f"quota_bytes {config.quota_bytes} stays: pages beyond it are reported as over_limit")
    if config.backend == "zimit":
        overrides["zimit"], raised = _resilient(config, host)
        notes += raised
    return overrides, tuple(notes)


def _resilient(config: SourceConfig, host: ZimitSettings) -> tuple[dict[str, Any], list[str]]:
    checked = check_job_config(config, host)
    job, caps = checked.zimit, annual_caps(checked, host)
    # An annual crawl runs for weeks, and the source may be configured for a short one.
    raised = below_minimum(job.tool_options, annual=True)
    notes = [f"{name} removed: an annual crawl is bounded by its scope" for name in caps]
    notes += [f"{name} raised from {job.tool_options.get(name, _DEFAULT)} to {value}" for name, value in raised.items()]
    # Flags may also set limits (--pageLimit, --depth): remove those and keep the others.
    given = read_flags(job.passthrough_args, host.flags)
    return {
        "passthrough_args": words_of(flag for flag in given if flag.name not in caps),
        "tool_options": {**config.zimit.tool_options, **raised},
        "execution_policy": dict(config.zimit.execution_policy),
    }, notes


class PlanStep(StrEnum):
    """The action for one entry."""

    CREATE = "create"
    ATTACH = "attach"
    SKIP = "skip"
    ERROR = "error"


class Skip(StrEnum):
    """Why an entry is skipped."""

    SCHEDULED = "already_scheduled"
    NAME_TAKEN = "name_taken"
    ACTIVE = "active_job"
    DISABLED = "source_disabled"
    LIMIT = "max_create_per_run"
    NO_REPORT = "report_not_generated"
    NO_GAPS = "no_gaps"
    COVERED = "seed_covered"
    EXISTS = "shard_exists"
    NOTHING = "nothing_to_attach"


@record
class PlanEntry:
    """One source, or one shard of it, in a plan."""

    source: Operator[str]
    step: Operator[PlanStep]
    reason: Operator[str | None] = None
    name: Operator[str | None] = None
    shard_key: Operator[str | None] = None
    seed: Operator[str | None] = None
    at: Operator[datetime | None] = None
    job_id: Operator[int | None] = None
    """Set once the plan is applied."""
    notes: Operator[tuple[str, ...]] = ()


@record
class Plan:
    """The jobs that a campaign creates, or would create."""

    year: Operator[int]
    applied: Operator[bool]
    entries: Operator[tuple[PlanEntry, ...]]

    @property
    def refused(self) -> list[PlanEntry]:
        """The entries that prevent the plan from being applied."""
        return [entry for entry in self.entries if entry.step is PlanStep.ERROR]

    @property
    def made(self) -> list[PlanEntry]:
        """The entries that are, or would be, created or attached."""
        return [entry for entry in self.entries if entry.step in (PlanStep.CREATE, PlanStep.ATTACH)]

    @property
    def created(self) -> Operator[int]:
        """Number of jobs that are, or would be, created or attached."""
        return len(self.made)

    @property
    def errors(self) -> Operator[int]:
        """Number of entries that prevent the plan from being applied."""
        return len(self.refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRequest:
    """The parameters of a campaign command."""

    year: int | None = None
    sources: tuple[str, ...] = ()
    """Source codes; empty means all annual sources."""
    max_create: int | None = None
    apply: bool = False
    url_cap: int = 5000
    """Planned size of a shard; never a limit on the crawl."""
