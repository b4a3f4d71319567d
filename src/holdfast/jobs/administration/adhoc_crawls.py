"""One-off crawls: of a named source, or of one created for the host; a worker runs the job as soon as it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.models import Job, Source
from holdfast.errors import Conflict, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.frontier.added_urls import AddRequest
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.executions import ADHOC
from holdfast.jobs.specs import JobRefused, JobSpec
from holdfast.jobs.states import State, state_of
from holdfast.records import Operator, record
from holdfast.sources import registry
from holdfast.sources.contact import contact_of
from holdfast.sources.queries import find_source, new_code, source_of_site
from holdfast.urls import parse_seed


class SourceDisabled(Conflict):
    """No worker runs jobs of a disabled source."""

    code = "source_disabled"

    def __init__(self, code: str) -> None:
        super().__init__(
            f"the source {code} is disabled, so nothing of it is crawled; enable it first, then start again"
        )


@record
class StartedCrawl:
    """A crawl that waits for a worker."""

    job_id: Operator[int]
    """Watch it at /api/v1/jobs/{id}."""
    source: Operator[str]
    is_new_source: Operator[bool]
    state: Operator[State]


def begin_crawl(
    session: Session,
    clock: Clock,
    actions: JobActions,
    settings: Settings,
    *,
    urls: Sequence[str],
    source: str | None = None,
    name: str | None = None,
    config: Mapping[str, Any],
) -> StartedCrawl:
    """Queue a crawl.

    Without the code of a `source`, that of the first URL's host is used, or created with this display name. `config`
    overrides the source's configuration for this crawl: scope, depth, limits.

    Raise Invalid naming the bad field, ContactMissing or SourceDisabled if no worker would ever start it.
    """
    guard = AddressGuard(settings.allow_networks)
    for number, written in enumerate(urls):
        try:
            demand_public(parse_seed(written), guard)
        except UrlRefused as exc:
            raise JobRefused(f"urls[{number}]", str(exc)) from exc
    if not urls:
        raise JobRefused("urls", "name at least one address")
    if "seeds" in config:
        raise JobRefused("config.seeds", "the crawl begins at `urls`; leave the seeds out")
    contact_of(settings)
    if source is not None:
        found, is_new = find_source(session, source), False
    else:
        found, is_new = _source_of(session, clock, urls[0], name, config.get("scope"))
    if not found.enabled:
        raise SourceDisabled(found.code)
    spec = JobSpec(
        source_id=found.id, config={**config, "seeds": list(urls)}, schedule_enabled=False, adaptive_scheduling=False
    )
    job = actions.add(session, spec, kind=ADHOC, at=clock.now())
    return StartedCrawl(job_id=job.id, source=found.code, is_new_source=is_new, state=state_of(job))


def _source_of(session: Session, clock: Clock, url: str, name: str | None, scope: str | None) -> tuple[Source, bool]:
    first = parse_seed(url)
    base = f"{first.origin}/"
    known = source_of_site(session, base)
    if known is not None:
        return known, False
    code = new_code(session, name=None, seed=base)
    # The source keeps the settings of the site; the limits apply to this crawl only.
    config = {"seeds": [first.fetch], **({"scope": scope} if scope else {})}
    content = {"code": code, "name": name or first.host, "base_url": base, "config": config}
    return registry.create(session, clock, registry.read_spec(content)), True


def crawl_once(
    actions: JobActions, clock: Clock, session: Session, source_id: int, urls: Sequence[str], request: AddRequest
) -> int:
    """Return the pending one-off job of a source, or create one that crawls these URLs.

    The new job follows links and sitemaps only from seeds; of other pages it captures only their requisites.
    """
    pending = select(Job.id).where(
        Job.source_id == source_id, Job.kind == ADHOC, Job.state == "pending", Job.deleted_at.is_(None)
    )
    known = session.scalar(pending.order_by(Job.id).limit(1))
    if known is not None:
        return known
    config = {"seeds": list(urls)} | ({} if request.is_seed else {"max_depth": 0, "sitemaps": False})
    spec = JobSpec(source_id=source_id, config=config, adaptive_scheduling=False, max_retries=request.max_retries)
    return actions.add(session, spec, kind=ADHOC, at=clock.now()).id
