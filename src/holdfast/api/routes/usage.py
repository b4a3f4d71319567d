"""`/api/usage`: how much the archive is used, by day; counts only."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.api.deps import ArchiveDep, UsageDep
from holdfast.api.errors import answers
from holdfast.api.roles import PUBLIC
from holdfast.api.schemas.archive import Usage, UsageDay, UsageTotals
from holdfast.feedback.usage import Day, Use

router = APIRouter(tags=["archive"], dependencies=[PUBLIC])


@router.get("/api/usage", responses=answers(503))
def usage(archive: ArchiveDep, tally: UsageDep) -> Usage:
    """Return what was done in the last days; nothing if counting is switched off."""
    settings = archive.settings.api
    days = tally.days(settings.usage_window_days) if settings.usage else []
    return Usage(
        enabled=settings.usage, window_days=settings.usage_window_days, totals=UsageTotals(**_named(days)),
        daily=[UsageDay(date=day.date, **_named([day])) for day in days],
    )  # fmt: skip


def _named(days: list[Day]) -> dict[str, int]:
    return {use.value: sum(day.counts[use] for day in days) for use in Use}
