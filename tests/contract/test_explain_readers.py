"""What members are told of an address, on both databases: the sources that they may see, and nothing of the house."""

from __future__ import annotations

import json
from contextlib import closing

import httpx

from holdfast.api.session_cookie import cookie_name
from holdfast.auth.roles import Role
from holdfast.auth.sessions import Browser, begin_session
from holdfast.auth.users import add_user
from holdfast.db import connect
from holdfast.db.models import Job
from holdfast.frontier.explain import ExplainRequest
from holdfast.frontier.explain_records import Explanation
from holdfast.jobs.next_runs import jobs_of_sources
from holdfast.records import encode
from holdfast.storage.store import FileKey
from holdfast.types import Outcome, RecordRef
from holdfast.warc import queries as files
from holdfast.wiring.explain import explain_url
from holdfast.withdrawals.hiding import hide
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, Viewer, seen_by
from tests.answers import as_record
from tests.api_bed import Server
from tests.archive import Shot, add_captures, index_all
from tests.contract.crawl_bed import crawl
from tests.contract.frontier_bed import many

_INTERNAL = ("far-machine", "warcs/ex/a.warc.gz", "holdfast job", "holdfast source", "the-operator", "owner 7")


def _as_role(server: Server, role: Role, url: str) -> httpx.Response:
    with server.archive.database.write() as session:
        user = add_user(session, server.clock, name=f"the-{role}", role=role)
        browser = Browser(address="127.0.0.1", agent="test")
        secret = begin_session(session, server.clock, user, browser, settings=server.archive.settings.auth).secret
    cookie = {"Cookie": f"{cookie_name(server.archive.settings)}={secret}"}
    return server.get("/api/explain", params={"url": url}, headers=cookie)


def _tried(server: Server) -> str:
    """Crawl a page that fails with a message of a machine, and one that is held; return the first."""
    with crawl(server) as run:
        run.add(*many("ex.example", 2))
        lease = run.lease()
        with run.raw_db.write() as tx:
            file_id = files.insert_file(tx, execution_id=run.id, owner_id=1, key=FileKey("warcs/ex/a.warc.gz"), now=0)
        ref = RecordRef(warc_file_id=file_id, ordinal=1, offset=753, length=99)
        facts = {"outcome": Outcome.BLOCKED_4XX, "reason": "http_404", "status": 404, "message": "far-machine (pid 7)"}
        run.settle(lease, 0, record=ref, **facts)
        return lease.attempts[0].url


def test_explain_tells_members_nothing_of_the_house(server: Server) -> None:
    url = _tried(server)
    member = _as_role(server, Role.MEMBER, url)
    observer = _as_role(server, Role.OBSERVER, url)
    operator = _as_role(server, Role.OPERATOR, url).json()

    assert [member.status_code, observer.status_code] == [200, 200], member.text
    for answer in (member, observer):
        assert [word for word in _INTERNAL if word in answer.text] == []
        told = as_record(answer)
        assert (told.domain, told.visibility.withdrawals) == (None, [])
        assert [(one.word, one.record, one.message) for one in told.attempts.items] == [("not found", None, None)]
        assert [one.source for one in told.sources.in_scope] == ["ex"]
    assert operator["domain"]["holder"]["owner"] == 7
    assert operator["attempts"]["items"][0]["record"]["warcFile"] == "warcs/ex/a.warc.gz"


def test_explain_tells_readers_of_what_they_may_see(server: Server) -> None:
    url = _tried(server)
    archive = server.archive
    with closing(connect(archive.settings.database)) as raw_db:
        add_captures(raw_db, archive.settings, server.clock, [Shot(url=url, source="ex")])
        index_all(raw_db, server.clock, archive.home)
    [source] = server.get("/api/v1/sources").json()["sources"]
    assert server.ask("PATCH", f"/api/v1/sources/{source['id']}", visibility="members").status_code == 200

    seen, hidden = _explained(server, EVERYTHING, url), _explained(server, PUBLIC, url)
    hide(archive.database, server.clock, str(seen.snapshots.items[0].id), reason="asked by Ann", home=archive.home)
    withdrawn = _explained(server, EVERYTHING, url)

    assert ([one.source for one in seen.sources.in_scope], seen.visibility.members_only) == (["ex"], ["ex"])
    assert (len(seen.attempts.items), seen.snapshots.count) == (1, 1)
    assert (hidden.sources.in_scope, hidden.visibility.members_only) == ([], [])
    assert (hidden.attempts.items, hidden.snapshots.count, hidden.snapshots.items) == ([], 0, [])
    assert hidden.outlook.next.sentence == "never: no source that you may see has it in its scope"
    assert (withdrawn.snapshots.count, withdrawn.snapshots.items) == (0, [])
    assert "Ann" not in json.dumps(encode(withdrawn))


def _explained(server: Server, viewer: Viewer, url: str) -> Explanation:
    archive = server.archive
    with seen_by(viewer), archive.database.read() as session:
        return explain_url(archive, session, ExplainRequest(url=url, is_reader=True))


def test_explain_hides_taken_down_pages_from_readers(server: Server) -> None:
    archive, url = server.archive, _tried(server)
    never = _explained(server, EVERYTHING, "https://ex.example/never-requested")
    hide(archive.database, server.clock, url, reason="personal data", home=archive.home)
    hidden = _explained(server, EVERYTHING, url)

    assert (hidden.attempts.items, hidden.snapshots.count) == ([], 0)
    assert hidden.visibility == never.visibility


def test_explain_hides_taken_down_links_and_captures_from_readers(server: Server) -> None:
    archive = server.archive
    with crawl(server) as run:
        first, second = many("ex.example", 2)
        run.add(first)
        run.settle(run.lease(), 0, redirected_to=second.url)
    before = _explained(server, EVERYTHING, first.url)
    hide(archive.database, server.clock, second.url, reason="personal data", home=archive.home)
    after = _explained(server, EVERYTHING, first.url)

    assert [one.redirected_to for one in before.attempts.items] == [second.url]
    assert [one.redirected_to for one in after.attempts.items] == [None]


def test_explain_reads_few_of_many_finished_jobs(server: Server) -> None:
    source = server.source()
    now = server.clock.now()
    with server.archive.database.write() as session:
        session.add_all(
            Job(source_id=source, kind="adhoc", fingerprint=str(number), config={}, created_at=now, state="completed")
            for number in range(50)
        )
        session.add(
            Job(source_id=source, kind="crawl", fingerprint="weekly", config={}, created_at=now, state="failed")
        )
        session.add_all(
            Job(source_id=source, kind="adhoc", fingerprint=f"late {number}", config={}, created_at=now, state=state)
            for number, state in enumerate(("pending", "completed", "completed"))
        )
    with server.archive.database.read() as session:
        [found] = jobs_of_sources(session, [source]).values()

    assert [(one.job.kind, one.job.state) for one in found] == [
        ("adhoc", "completed"),
        ("adhoc", "pending"),
        ("crawl", "failed"),
    ]
