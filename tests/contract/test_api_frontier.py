"""The frontier and its domains over HTTP, on both databases: looked at and changed, never less polite."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from holdfast.clock import to_micros
from holdfast.types import CircuitState, Outcome, RobotsAnswer, RobotsRecord, UrlKind
from tests.api_bed import Server
from tests.contract.crawl_bed import Crawl, all_of, crawl
from tests.contract.frontier_bed import many

ROBOTS = b"User-agent: *\nDisallow: /private\n<script>alert(1)</script>\xff\x00\nCrawl-delay: 7\n"


def test_the_figures_and_the_addresses_of_the_newest_crawl(server: Server) -> None:
    with crawl(server, code="old", state="completed") as old, crawl(server) as running:
        old.add(*many("old.example", 1))
        running.add(*many("ex.example", 5))
        lease = running.lease()
        running.add(*many("b.example", 1))
        running.settle(lease, 0)
        running.settle(lease, 1, outcome=Outcome.FAILED, reason="timeout", status=None)
        with crawl(server, kind="import", code="files"):
            stats = server.get("/api/frontier/stats").json()
            listed = {item["url"]: item for item in all_of(server, "/api/frontier/urls", limit=2)}

    wanted = {
        "executionId": running.id, "sourceCode": "ex", "state": "running", "pending": 4, "inProgress": 1,
        "completed": 1, "failed": 1, "ruledOut": 0, "totalDomains": 2, "pausedDomains": 0, "waiting": 0,
    }  # fmt: skip
    assert stats == wanted
    assert len(listed) == 6
    assert sorted(item["status"] for item in listed.values()) == ["completed", "failed", *["pending"] * 4]
    assert server.get(f"/api/frontier/stats?execution={old.id}").json()["pending"] == 1


def test_addresses_are_listed_by_filter_in_the_order_of_their_turn_and_piece_by_piece(server: Server) -> None:
    with crawl(server) as running:
        ranks = {f"https://ex.example/{number}": number % 3 + 1 for number in range(20)}
        running.add(*(one._replace(priority=ranks[one.url]) for one in many("ex.example", 20)))
        later = to_micros(server.clock.now()) + 60_000_000
        running.add(*(one._replace(scheduled_for=later) for one in many("late.example", 3)))
        running.add(*many("b.example", 4))

        pending = list(all_of(server, "/api/frontier/urls", status="pending", limit=3))
        deferred = list(all_of(server, "/api/frontier/urls", status="deferred", limit=2))
        of_b = list(all_of(server, "/api/frontier/urls", domain="https://B.example/", limit=3))
        found = list(all_of(server, "/api/frontier/urls", search="ple/1", status="pending", limit=2))

    ours = [item for item in pending if item["domain"] == "ex.example"]
    assert [item["priority"] for item in ours] == sorted(ranks.values(), reverse=True)
    assert len(pending) == len({item["id"] for item in pending}) == 24
    assert [item["domain"] for item in deferred] == ["late.example"] * 3
    assert all(item["scheduledFor"] is not None for item in deferred)
    assert sorted(item["url"] for item in of_b) == [f"https://b.example/{number}" for number in range(4)]
    assert {item["url"] for item in found} == {url for url in (*ranks, "https://b.example/1") if "ple/1" in url}


@pytest.mark.parametrize("path", ["/api/frontier/urls", "/api/domains", "/api/crawler/discovered"])
def test_a_cursor_of_ones_own_making_is_refused(server: Server, path: str) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 1))
        answers = [server.get(path, params={"cursor": bad}) for bad in ("x", "WzFd", "W10", "bnVsbA")]

    assert {answer.status_code for answer in answers} == {422}
    assert {answer.json()["code"] for answer in answers} == {"bad_cursor"}


def test_nothing_queued_anywhere_says_how_to_begin(server: Server) -> None:
    answer = server.get("/api/frontier/urls")

    assert answer.status_code == 404
    assert "holdfast crawl" in answer.json()["detail"]
    assert server.get("/api/frontier/stats?execution=99").status_code == 404


def test_an_added_address_joins_the_run_of_its_source(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 1))
        answer = server.ask("POST", "/api/frontier/add", urls=["https://ex.example/new#part", "ex.example/0"])
        again = server.ask("POST", "/api/frontier/add", urls=["https://ex.example/new"])

        place = {
            "sourceCode": "ex", "status": "joined", "urls": 2, "added": 1, "raised": 0, "executionId": running.id,
            "jobId": None, "when": f"Run {running.id} of ex crawls them; it is running.",
        }  # fmt: skip
        assert answer.json() == {"added": 1, "total": 2, "places": [place]}
        assert again.json()["added"] == 0
        assert running.urls() == {"https://ex.example/0", "https://ex.example/new"}
        lease = running.lease()
    assert {attempt.depth for attempt in lease.attempts} == {1}
    actor, action, subject = server.deeds()[-1]
    assert (action, subject) == ("frontier.added", "source ex")
    assert "@127.0.0.1" in actor


def test_an_added_address_waits_for_the_next_run_which_takes_it_once(server: Server) -> None:
    server.recurring("ex")
    waits = server.ask("POST", "/api/frontier/add", urls=["https://ex.example/new"], priority=1, source="ex").json()

    assert waits["places"][0]["status"] == "waits"
    with crawl(server, kind="annual") as first:
        first.add(*many("ex.example", 1))
        assert server.get("/api/frontier/stats").json()["waiting"] == 1
        assert first.frontier.take_waiting(first.id, lambda row: False) == 0
        assert first.frontier.take_waiting(first.id, lambda row: True) == 1
        assert "https://ex.example/new" in first.urls()
        assert server.get("/api/frontier/stats").json()["waiting"] in (0, 1)
    with crawl(server, kind="annual") as second:
        assert second.frontier.take_waiting(second.id, lambda row: True) == 0


def test_an_address_that_a_run_did_not_get_to_is_taken_by_the_next_and_one_that_it_did_is_not(server: Server) -> None:
    with crawl(server, kind="annual") as first:
        server.ask("POST", "/api/frontier/add", urls=["https://ex.example/a", "https://ex.example/b"])
        lease = first.lease()
        first.settle(lease, 0)
        done = lease.attempts[0].url
        with crawl(server, kind="annual") as second:
            assert second.frontier.take_waiting(second.id, lambda row: True) == 1
            assert second.urls() == {"https://ex.example/a", "https://ex.example/b"} - {done}


@pytest.mark.parametrize("reason", ["stopped", "cancelled", "over_limit:max_pages"])
def test_an_address_that_a_run_left_when_it_ended_early_is_taken_by_the_next(server: Server, reason: str) -> None:
    with crawl(server, kind="annual") as first:
        server.ask("POST", "/api/frontier/add", urls=["https://ex.example/a"])
        assert first.frontier.close_rest(first.id, outcome=Outcome.EXCLUDED, reason=reason) == 1
    with crawl(server, kind="annual") as second:
        assert second.frontier.take_waiting(second.id, lambda row: True) == 1


def test_an_address_that_is_to_be_asked_first_is_heard_of_by_who_holds_its_domain(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 300))
        lease = running.lease()
        since = server.clock.now()
        server.clock.advance(1)
        server.ask("POST", "/api/frontier/add", urls=["https://ex.example/later"])
        assert running.frontier.control.changed_since(since) == []
        server.ask("POST", "/api/frontier/add", urls=["https://ex.example/now"], priority=3)
        [change] = running.frontier.control.changed_since(since)
        assert change.domain_id == lease.domain_id
        running.release(lease)
        again = running.lease()
    assert {one.url for one in again.attempts[:2]} == {"https://ex.example/later", "https://ex.example/now"}


def test_a_run_that_has_just_ended_takes_no_address(server: Server) -> None:
    server.recurring("ex")
    with crawl(server, kind="annual") as ended:
        with server.bed.database.write() as session:
            session.execute(text("UPDATE executions SET stop_requested = 'drain'"))
        answer = server.ask("POST", "/api/frontier/add", urls=["https://ex.example/a"]).json()

        assert answer["places"][0]["status"] == "waits"
        assert ended.urls() == set()


def test_a_host_without_a_source_gets_one_with_a_job_that_runs_once(server: Server) -> None:
    urls = ["https://www.new.example/a", "https://new.example/b"]
    first = server.ask("POST", "/api/frontier/add", urls=urls).json()
    again = server.ask("POST", "/api/frontier/add", urls=["https://new.example/c"]).json()

    [place] = first["places"]
    assert (place["status"], place["sourceCode"], place["added"]) == ("job_made", "new-example", 2)
    job = server.row(place["jobId"])
    assert (job["kind"], job["state"], job["config"]["seeds"], job["schedule_enabled"]) == (
        "adhoc", "pending", urls, False
    )  # fmt: skip
    assert (job["config"]["max_depth"], job["config"]["sitemaps"]) == (0, False)
    assert job["next_run_at"] is not None
    assert (again["places"][0]["status"], again["places"][0]["sourceCode"]) == ("waits", "new-example")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [({"urls": "https://ex.example/"}, 422, "invalid"), ({"urls": []}, 422, "invalid"),
     ({"urls": ["javascript:alert(1)"]}, 422, "invalid"), ({"urls": ["https://ex.example/\x00"]}, 422, "invalid"),
     ({"urls": ["https://other.example/"], "source": "ex"}, 422, "out_of_scope"),
     ({"urls": ["https://ex.example/"], "source": "none"}, 404, "source_not_found"),
     ({"urls": ["https://ex.example/"], "priority": 9}, 422, "invalid")],
)  # fmt: skip
def test_what_cannot_be_added_is_refused_with_its_reason(
    one_source: Server, body: dict[str, Any], status: int, code: str
) -> None:
    answer = one_source.client.request("POST", "/api/frontier/add", json=body)

    assert answer.status_code == status, answer.text
    assert answer.json()["code"] == code, answer.text
    assert code == "source_not_found" or answer.json()["field"].partition("[")[0] in body, answer.text


def test_seeds_are_asked_first_and_those_of_a_source_need_not_be_named(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 2))
        own = server.ask("POST", "/api/frontier/seed", source="ex").json()
        server.ask("POST", "/api/frontier/seed", urls=["https://ex.example/s"])
        lease = running.lease()

    assert (own["added"], own["places"][0]["status"]) == (1, "joined")
    assert [(attempt.url, attempt.depth, attempt.priority) for attempt in lease.attempts][:2] == [
        ("https://ex.example/", 0, 3), ("https://ex.example/s", 0, 3)
    ]  # fmt: skip
    assert server.ask("POST", "/api/frontier/seed", urls=[]).status_code == 422


def test_clearing_takes_all_that_is_queued_and_tells_who_holds_it(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 2300))
        before = server.clock.now()
        lease = running.lease()
        running.add(*many("b.example", 3))
        answer = server.client.request("DELETE", "/api/frontier", params={"execution": running.id})

        assert answer.json() == {"removed": 2303, "done": True, "executions": [running.id]}
        assert running.urls() == set()
        heard = running.frontier.control.changed_since(before.replace(year=2000))
        assert [change.domain_id for change in heard] == [lease.domain_id], "the other is held by nobody"
        counts = server.get("/api/frontier/urls", params={"status": "excluded", "limit": 1}).json()["items"]
    assert counts[0]["reason"] == "cleared"
    assert ("frontier.cleared", f"execution {running.id}") in [deed[1:] for deed in server.deeds()]


def test_a_purge_takes_a_domain_from_one_execution_or_from_all(server: Server) -> None:
    with crawl(server) as one, crawl(server, kind="annual") as two:
        for running in (one, two):
            running.add(*many("ex.example", 3), *many("b.example", 2))
        first = server.client.request("POST", "/api/domains/ex.example/purge", params={"execution": one.id}).json()
        rest = server.ask("POST", "/api/domains/ex.example/purge").json()

        assert first == {"removed": 3, "done": True, "executions": [one.id]}
        assert rest == {"removed": 3, "done": True, "executions": [two.id]}
        assert {url.split("/")[2] for running in (one, two) for url in running.urls()} == {"b.example"}
    assert server.ask("POST", "/api/domains/nowhere.example/purge").status_code == 404


def _domain(server: Server, name: str = "ex.example") -> dict[str, Any]:
    body: dict[str, Any] = server.get(f"/api/domains/{name}").json()
    return body


def test_settings_of_a_domain_hold_for_its_next_lease_and_are_heard_by_its_holder(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 2))
        lease = running.lease()
        since = server.clock.now()
        server.clock.advance(1)
        slowed = server.ask("PUT", "/api/domains/ex.example/settings", crawlDelay=4.5)
        [change] = running.frontier.control.changed_since(since)
        assert (change.domain_id, change.delay_s) == (lease.domain_id, 4.5)
        assert change.changed_at > since
        running.release(lease)

        assert slowed.json() == {
            "domain": "ex.example", "crawlDelay": 4.5, "isAllowed": True, "paused": False, "pausedAt": None
        }  # fmt: skip
        again = running.lease()
        assert (again.delay_s, again.changed_at) == (4.5, change.changed_at)
        running.release(again)

        paused = server.ask("PUT", "/api/domains/ex.example/settings", paused=True).json()
        assert (paused["paused"], paused["crawlDelay"]) == (True, 4.5)
        assert running.frontier.lease(running.id, 7, domains=1, pages=1) == []
        assert running.frontier.lease_named(7, "ex.example") is None
        assert _domain(server)["state"] == "paused"
        [slow] = running.status().slow
        assert (slow["domain"], "holdfast domain resume" in slow["why"]) == ("ex.example", True)
        assert server.get("/api/frontier/stats").json()["pausedDomains"] in (0, 1)
        server.ask("PUT", "/api/domains/ex.example/settings", paused=False, crawlDelay=None)
        assert running.lease().delay_s == 0.0


def test_a_pause_that_lasts_is_found_so_that_no_run_waits_for_ever(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 2))
        running.add(*many("b.example", 1))
        server.ask("PUT", "/api/domains/ex.example/settings", paused=True)
        paused_at = server.clock.now()
        server.clock.advance(60)
        server.ask("PUT", "/api/domains/ex.example/settings", paused=True)
        found = running.frontier.paused_domains(running.id, before=paused_at)
        sooner = running.frontier.paused_domains(running.id, before=paused_at - timedelta(seconds=1))

        assert (len(found), sooner) == (1, []), "a second word does not begin the pause anew"
        [(domain_id, token)] = found
        assert running.frontier.close_domain(
            running.id, domain_id, outcome=Outcome.FAILED, reason="domain_paused", token=token
        ) == 2  # fmt: skip
        assert running.frontier.paused_domains(running.id, before=server.clock.now()) == []
        server.ask("PUT", "/api/domains/ex.example/settings", paused=False)
        assert running.frontier.reopen(running.id) == 2, "a retry asks for them"


def test_a_forbidden_domain_is_never_leased_and_one_that_no_crawl_has_met_can_be_forbidden(server: Server) -> None:
    answer = server.ask("PUT", "/api/domains/bad.example:8080/settings", isAllowed=False)
    with crawl(server) as running:
        running.add(*many("bad.example:8080", 1))

        assert answer.json()["isAllowed"] is False
        assert running.frontier.lease(running.id, 7, domains=1, pages=1) == []
        assert _domain(server, "bad.example:8080")["state"] == "forbidden"
        assert [item["domain"] for item in all_of(server, "/api/domains", state="forbidden")] == ["bad.example:8080"]


@pytest.mark.parametrize("seconds", [0, 0.2, 0.999, 3601, 86_400])
def test_no_setting_makes_a_domain_faster_than_the_house_asks(one_source: Server, seconds: float) -> None:
    answer = one_source.ask("PUT", "/api/domains/ex.example/settings", crawlDelay=seconds)

    assert answer.status_code == 422
    assert answer.json()["code"] == "delay_refused"


def test_settings_that_say_nothing_or_name_no_host_are_refused(one_source: Server) -> None:
    nothing = one_source.client.request("PUT", "/api/domains/ex.example/settings", json={})
    odd = one_source.ask("PUT", "/api/domains/a b/settings", paused=True)

    assert (nothing.status_code, odd.status_code) == (422, 422)
    assert "paused" in nothing.json()["detail"]


def _read_robots(server: Server, running: Crawl, body: bytes = ROBOTS) -> None:
    running.add(*many("ex.example", 2))
    now = server.clock.now()
    state = RobotsRecord(origin="https://ex.example", answer=RobotsAnswer.RULES, fetched_at=now, checked_at=now,
                        failures=0, status=200, body=body)  # fmt: skip
    running.release(running.lease(), robots=(state,))


def test_robots_text_is_a_string_and_the_rule_that_decides_is_named(server: Server) -> None:
    with crawl(server) as running:
        _read_robots(server, running)
        plain = server.get("/api/domains/ex.example/robots")
        private = server.get("/api/domains/ex.example/robots?url=https://ex.example/private/x").json()
        free = server.get("/api/domains/ex.example/robots?url=https://ex.example/open").json()
        unread = server.get("/api/domains/ex.example/robots?url=http://ex.example/open").json()
        elsewhere = server.get("/api/domains/ex.example/robots?url=https://other.example/")

    assert plain.headers["content-type"] == "application/json"
    body = plain.json()
    assert (
        body["robotsTxt"]
        == "User-agent: *\nDisallow: /private\n<script>alert(1)</script>\ufffd\ufffd\nCrawl-delay: 7\n"
    )
    assert (body["crawlDelay"], body["ruling"]) == (7.0, None)
    assert private["ruling"]["allowed"] is False
    assert private["ruling"]["line"] == 2
    assert (free["ruling"]["allowed"], free["ruling"]["reason"]) == (True, "no rule matches")
    assert (unread["ruling"]["allowed"], unread["robotsTxt"]) == (False, None)
    assert elsewhere.status_code == 422


def test_robots_are_read_anew_before_the_next_page_when_an_operator_asks(server: Server) -> None:
    with crawl(server) as running:
        _read_robots(server, running)
        server.clock.advance(5)
        assert server.ask("POST", "/api/domains/ex.example/refresh-robots").status_code == 200
        lease = running.lease()

        assert lease.robots_after == server.clock.now()
        assert lease.robots[0].checked_at < lease.robots_after
        assert server.ask("POST", "/api/domains/nowhere.example/refresh-robots").status_code == 404


def test_a_circuit_is_shown_and_reset(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 1))
        lease, at = running.lease(), server.clock.now()
        busy = server.ask("POST", "/api/admin/domains/ex.example/reset")
        circuit = CircuitState(state="open", failures=9, opened_at=at, penalty=8.0, unreachable_since=at)
        running.release(lease, circuit=circuit, next_allowed_at=at.replace(year=at.year + 1))
        shown = _domain(server)
        listed = list(all_of(server, "/api/domains", state="unreachable"))
        reset = server.ask("POST", "/api/admin/domains/ex.example/reset")

        assert busy.status_code == 409
        assert (shown["state"], shown["circuit"], shown["slowDown"]) == ("unreachable", "open", 8.0)
        assert shown["queue"]["pending"] == 1
        assert [item["domain"] for item in listed] == ["ex.example"]
        assert reset.json() == {"domain": "ex.example", "changed": True}
        assert _domain(server)["state"] == "ready"
        assert running.lease()


def test_domains_are_sorted_by_name_age_size_and_delay(server: Server) -> None:
    with crawl(server) as running:
        for name, pages in (("c.example", 2), ("a.example", 3), ("b.example", 1)):
            running.add(*many(name, pages))
        server.ask("PUT", "/api/domains/b.example/settings", crawlDelay=9)
        server.ask("PUT", "/api/domains/a.example/settings", crawlDelay=2)

        def names(**query: Any) -> str:
            return "".join(item["domain"][0] for item in all_of(server, "/api/domains", limit=1, **query))

        assert names() == "abc"
        assert names(order="desc") == "cba"
        assert names(sortBy="created_at") == "cab"
        assert names(sortBy="page_count", order="desc") == "acb"
        assert names(sortBy="crawl_delay") == "ab"
        assert names(sortBy="crawl_delay", order="desc") == "ba"
        assert [item["pageCount"] for item in all_of(server, "/api/domains")] == [3, 1, 2]


def test_hosts_that_were_left_out_are_listed_with_their_links(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 1))
        lease = running.lease()
        excluded = {("out_of_scope:host", f"{letter}.example"): number for number, letter in enumerate("cab", 1)}
        running.settle(lease, 0, excluded={**excluded, ("max_depth", "ex.example"): 9})
        found = list(all_of(server, "/api/crawler/discovered", limit=2))
        deep = list(all_of(server, "/api/crawler/discovered", rule="max_depth"))

    assert [(item["host"], item["links"]) for item in found if item["rule"] != "max_depth"] == [
        ("a.example", 2), ("b.example", 3), ("c.example", 1)
    ]  # fmt: skip
    assert deep == [{"host": "ex.example", "rule": "max_depth", "links": 9}]


def test_recovering_frees_leases_that_expired_long_ago(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 1))
        running.lease()
        server.clock.advance(3600)
        first = server.client.request("POST", "/api/frontier/recover", params={"minutes": 100}).json()
        then = server.client.request("POST", "/api/frontier/recover", params={"minutes": 10}).json()

        assert (first["recovered"], then["recovered"]) == (0, 1)
        assert running.lease().taken_over


def test_a_source_with_addresses_that_wait_is_not_deleted(server: Server) -> None:
    source_id = server.source("ex")
    server.ask("POST", "/api/frontier/add", urls=["https://ex.example/x"])
    refused = server.ask("DELETE", f"/api/v1/sources/{source_id}")

    assert refused.status_code == 400


def test_the_older_words_list_submit_retry_and_drop(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 3))
        lease = running.lease()
        running.settle(lease, 0, outcome=Outcome.FAILED, reason="timeout", status=None)
        running.settle(lease, 1)
        dead = server.get("/api/v1/frontier", params={"status": "dead", "source_id": running.source_id}).json()
        totals = server.get("/api/v1/frontier/stats").json()
        submitted = server.ask(
            "POST", "/api/v1/frontier/submit", url="https://ex.example/n", source_id=running.source_id
        )
        [failed] = dead["urls"]
        again = server.ask("POST", f"/api/v1/frontier/{failed['id']}/retry")
        twice = server.ask("POST", f"/api/v1/frontier/{failed['id']}/retry")
        [fetched] = server.get("/api/v1/frontier", params={"status": "fetched"}).json()["urls"]
        not_dead = server.ask("POST", f"/api/v1/frontier/{fetched['id']}/retry")
        open_id = next(
            row["id"] for row in server.get("/api/v1/frontier?status=pending").json()["urls"] if row["url"][-1] == "n"
        )
        dropped = server.ask("DELETE", f"/api/v1/frontier/{open_id}")
        gone = server.ask("DELETE", f"/api/v1/frontier/{open_id}")

        assert (dead["total"], failed["last_error"], failed["status"]) == (1, "timeout", "dead")
        assert (totals["total_pending"], totals["total_fetched"], totals["total_dead"]) == (1, 1, 1)
        assert (submitted.status_code, submitted.json()["status"]) == (201, "joined")
        assert (again.status_code, again.json()["execution_id"]) == (200, running.id)
        assert failed["url"] in running.urls()
        assert (twice.status_code, not_dead.status_code, dropped.status_code, gone.status_code) == (400, 400, 204, 400)
        assert not any(url.endswith("/n") for url in running.urls())
        assert server.get(f"/api/v1/frontier/{open_id}").json()["last_error"] == "purged"
    assert server.get("/api/v1/frontier/99999").status_code == 404


def test_frontier_v1_tells_origin_and_fetch_count_and_filters(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 2, depth=0), *many("map.example", 1, kind=UrlKind.SITEMAP, depth=0))
        lease = running.lease()
        while lease.domain != "ex.example":
            lease = running.lease(owner=8)
        page = lease.attempts[0]
        running.frontier.add(running.id, many("link.example", 1), via=page.page_id)
        [map_id] = [row["id"] for row in all_of(server, "/api/frontier/urls", domain="map.example")]
        with running.raw_db.read() as tx:
            [(map_page,)] = tx.execute("SELECT page_id FROM page_crawls WHERE id = ?", (map_id,))
        running.frontier.add(running.id, many("listed.example", 3), via=int(map_page))
        running.settle(lease, 0)
        added = server.ask("POST", "/api/v1/frontier", url="https://ex.example/n", source_id=running.source_id)

        entries = {row["url"]: row for row in server.get("/api/v1/frontier").json()["urls"]}
        listed = server.get("/api/v1/frontier", params={"origin": "sitemap", "limit": 2}).json()
        skipped = server.get("/api/v1/frontier", params={"origin": "sitemap", "offset": 2, "limit": 9}).json()["urls"]
        by_rank = server.get("/api/v1/frontier", params={"sort_by": "priority"}).json()["urls"]
        mixed = server.get("/api/v1/frontier", params={"sort_by": "priority", "status": "fetched"})

    assert added.status_code == 201
    assert {url: row["origin"] for url, row in entries.items()} == {
        "https://ex.example/0": "seed", "https://ex.example/1": "seed", "https://map.example/0": "sitemap",
        "https://link.example/0": "link", "https://ex.example/n": "submitted",
        **{f"https://listed.example/{number}": "sitemap" for number in range(3)},
    }  # fmt: skip
    assert {row["fetch_count"] for url, row in entries.items() if url != page.url} == {0}
    assert entries[page.url]["fetch_count"] == 1
    assert (len(listed["urls"]), len(skipped)) == (2, 2)
    assert {row["id"] for row in listed["urls"]}.isdisjoint(row["id"] for row in skipped)
    assert {row["status"] for row in by_rank} == {"pending"}
    assert (mixed.status_code, mixed.json()["field"]) == (400, "sort_by")


def test_what_failed_in_a_run_that_is_over_is_asked_for_by_the_next(server: Server) -> None:
    server.recurring("ex")
    with crawl(server, kind="annual") as over:
        over.add(*many("ex.example", 1))
        over.settle(over.lease(), 0, outcome=Outcome.FAILED, reason="timeout", status=None)
        with server.bed.database.write() as session:
            session.execute(text("UPDATE executions SET state = 'completed'"))
        [dead] = server.get("/api/v1/frontier?status=dead").json()["urls"]
        answer = server.ask("POST", f"/api/v1/frontier/{dead['id']}/retry").json()

    assert (answer["status"], answer["source"]) == ("waits", "ex")


def test_storage_is_weighed_and_only_what_can_be_made_anew_goes(server: Server) -> None:
    package = server.bed.home / "cache" / "wacz" / "1" / "abc"
    package.mkdir(parents=True, exist_ok=True)
    for name in ("layout.json", "pages.jsonl"):
        (package / name).write_text("{}" * 5000)
    weighed = server.get("/api/admin/storage").json()
    dry = server.ask("POST", "/api/admin/cleanup", targets=["packages"])
    kept = package.exists()
    done = server.ask("POST", "/api/admin/cleanup", targets=["packages", "tool_files"], apply=True).json()

    stores = {store["name"]: store["bytes"] for store in weighed["stores"]}
    assert set(stores) == {"database", "warcs", "search", "cache", "other"}
    assert stores["database"] > 0
    assert stores["cache"] >= 20_000
    assert weighed["diskBytes"] > weighed["freeBytes"] > 0
    assert (dry.status_code, dry.json()["applied"], kept) == (200, False, True)
    assert dry.json()["freedBytes"] >= 20_000
    assert (done["applied"], done["freedBytes"] >= 20_000, package.exists()) == (True, True, False)
    assert "storage.cleaned" in [action for _, action, _ in server.deeds()]
    assert server.ask("POST", "/api/admin/cleanup", targets=["captures"]).status_code == 422


def test_pages_of_every_storage_areall_of(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 2))
        lease = running.lease()
        running.settle(lease, 0, title="Kept whole", media_type="text/html")
        listed = server.get("/api/pages").json()

    assert [(page["url"], page["title"], page["statusCode"]) for page in listed["pages"]] == [
        (lease.attempts[0].url, "Kept whole", 200)
    ]  # fmt: skip
