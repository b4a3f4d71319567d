"""Outcomes of attempts in plain words, the same in the API, the pages and `explain`."""

from __future__ import annotations

from typing import Final

from holdfast.types import (
    DOMAIN_PAUSED,
    DOMAIN_UNREACHABLE,
    NEW_OWNER,
    NO_SITEMAP,
    REDIRECTED,
    TAKEN_AWAY,
    TRUNCATED_BODIES,
    FetchProblem,
    Outcome,
)

LEFT_OVER: Final = "not crawled: the run ended first"
_BY_OUTCOME: Final = {
    Outcome.SUCCESS.value: "captured",
    Outcome.FAILED.value: "failed",
    Outcome.TIMEOUT.value: "timed out",
    Outcome.BLOCKED_ROBOTS.value: "forbidden by robots.txt",
    Outcome.BLOCKED_4XX.value: "refused by the server",
    Outcome.BLOCKED_5XX.value: "server error",
    Outcome.EXCLUDED.value: "excluded by a rule",
}
_BY_REASON: Final = {
    "not_modified": "unchanged since the last capture",
    REDIRECTED: "redirect",
    "http_404": "not found",
    "http_410": "not found",
    "http_429": "rate-limited by the server",
    NO_SITEMAP: "no sitemap there",
    FetchProblem.DNS.value: "host name lookup failed",
    FetchProblem.NO_SUCH_NAME.value: "host name does not exist",
    FetchProblem.CONNECT.value: "could not connect",
    FetchProblem.TLS.value: "TLS failed",
    FetchProblem.DISCONNECTED.value: "connection closed",
    DOMAIN_UNREACHABLE: "host unreachable",
    DOMAIN_PAUSED: "host paused by an operator",
    "robots_unreachable": "robots.txt unreachable",
    "stopped": LEFT_OVER,
    "cancelled": LEFT_OVER,
    "over_limit:max_time": LEFT_OVER,
    "over_limit:max_bytes": LEFT_OVER,
    "over_limit:max_pages": LEFT_OVER,
    **dict.fromkeys(TAKEN_AWAY, "removed by an operator"),
    **dict.fromkeys(TRUNCATED_BODIES, "cut off"),
}
_BY_BEGINNING: Final = {
    "over_limit:": "left out by a limit",
    "trap:": "left out by a limit",
    NEW_OWNER: "moved to another owner",
}
_ROBOTS_LINE: Final = "robots:line "


def outcome_word(outcome: str | None, reason: str | None) -> str:
    """Return an attempt's outcome for display; `queued` while it is open."""
    if outcome is None or outcome == "open":
        return "queued"
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    found = (word for start, word in _BY_BEGINNING.items() if (reason or "").startswith(start))
    return next(found, _BY_OUTCOME.get(outcome, outcome))


def robots_line(reason: str | None) -> int | None:
    number = (reason or "").removeprefix(_ROBOTS_LINE)
    return int(number) if reason != number and number.isdecimal() else None
