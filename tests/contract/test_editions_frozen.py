"""Frozen editions that something happened to, on both databases; and crawls of another make whose answers lead on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.db.models import Edition, WarcFile
from holdfast.editions import queries
from holdfast.editions.comparison import write_comparison
from holdfast.editions.edition_files import EditionBusy
from holdfast.editions.edition_view import EditionNotReady
from holdfast.editions.freezing import FrozenListDamaged, Verified, freeze, verify_frozen
from holdfast.editions.report import write_report
from holdfast.frontier.attempts import last_attempts
from holdfast.processes.runfile import alone
from holdfast.wiring.archive import Archive
from holdfast.withdrawals import hiding
from holdfast.withdrawals.visibility import is_any_withdrawn, withdrawn_among
from tests.archive import Shot, build_archive
from tests.client import asking
from tests.contract.test_editions_archive import asked
from tests.editions_bed import adopt

SITE = "https://example.org/"


def _away(path: str, target: str, status: int, media_type: str | None = "text/html") -> Shot:
    return Shot(url=f"{SITE}{path}", status=status, media_type=media_type, body="moved",
                headers={"Location": target})  # fmt: skip


SHOTS = [
    Shot(url=SITE, body="<p>home"),
    Shot(url=f"{SITE}page", body="<p>page"),
    _away("moved", "/page", 308),
    _away("bare", "/moved", 307, None),
    _away("lost", "/gone", 301),
    Shot(url=f"{SITE}gone", body="<p>nothing", status=404),
    _away("out", "https://other.org/", 302, None),
    _away("picture", "/picture.png", 302, None),
    Shot(url=f"{SITE}picture.png", body="PNG", media_type="image/png"),
    Shot(url=SITE, body="<p>home", execution=2),
]
SEEDS = tuple(f"{SITE}{path}" for path in ("", "moved", "bare", "lost", "out"))


@pytest.fixture
def archive(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    built = build_archive(tmp_path / "home", SHOTS, database_url=migrated_url)
    yield built
    built.database.close()


@pytest.fixture
def edition_id(archive: Archive) -> int:
    return adopt(archive, "example", 2025, executions=("example-1",), seeds=SEEDS)


def _freeze(archive: Archive, edition_id: int, *, again: bool = False) -> tuple[Edition, Path]:
    row = freeze(archive.database, archive.home, archive.clock, edition_id, again=again)
    assert row.frozen_path is not None
    return row, archive.home / row.frozen_path


class _Enough(Exception):
    """What breaks work off."""


def _leave_off(count: int) -> None:
    if count == 2:
        raise _Enough


def test_freezing_and_comparing_leave_off_at_the_next_row_and_change_nothing(archive: Archive, edition_id: int) -> None:
    database, home, clock = archive.database, archive.home, archive.clock
    later = adopt(archive, "example", 2026, executions=("example-2",), seeds=(SITE,))
    for one in (edition_id, later):
        write_report(database, home, clock, one)
    before = sorted(path.name for path in (home / "editions").rglob("*"))

    with pytest.raises(_Enough):
        freeze(database, home, clock, edition_id, on_row=_leave_off)
    with pytest.raises(_Enough):
        write_comparison(database, home, clock, edition_id, later, on_row=_leave_off)

    assert sorted(path.name for path in (home / "editions").rglob("*")) == before
    with database.read() as session:
        assert session.scalars(select(Edition.frozen_at)).all() == [None, None]


def _verify(archive: Archive, edition_id: int, *, quick: bool = False) -> Verified:
    return verify_frozen(archive.database, archive.home, edition_id, quick=quick)


def test_a_seed_that_another_crawler_was_sent_away_from_is_captured_if_it_ended_in_a_page(
    archive: Archive, edition_id: int
) -> None:
    content = write_report(archive.database, archive.home, archive.clock, edition_id)[0]

    lines = (archive.home / "editions/example/2025/target-ledger.jsonl").read_text().splitlines()
    rows = {row["url"].removeprefix(SITE): row for row in map(json.loads, lines)}
    assert {path: (row["intent_source"], row["outcome"], row["reason"]) for path, row in rows.items()} == {
        "": ("seed", "captured", "ok"),
        "page": ("crawler", "captured", "ok"),
        "moved": ("seed", "captured", "redirected"),
        "bare": ("seed", "captured", "redirected"),
        "lost": ("seed", "failed", "redirect_http_404"),
        "gone": ("crawler", "failed", "http_404"),
        "out": ("seed", "excluded", "redirect_out_of_scope:scope:host"),
    }
    assert rows["bare"]["redirected_to"] == f"{SITE}page"
    assert [seed["url"] for seed in content["missing_seeds"]] == [f"{SITE}lost", f"{SITE}out"]


def test_a_list_that_was_lost_or_edited_is_put_back_by_freezing_again(archive: Archive, edition_id: int) -> None:
    first, path = _freeze(archive, edition_id)
    content = path.read_bytes()

    path.unlink()
    with pytest.raises(EditionNotReady, match="freeze --again"):
        _verify(archive, edition_id)
    again, _ = _freeze(archive, edition_id, again=True)
    restored = path.read_bytes()
    path.write_bytes(content.replace(b"sha256:", b"sha256:0", 1))
    edited = _verify(archive, edition_id)
    _freeze(archive, edition_id, again=True)

    assert (again.frozen_digest, again.frozen_at) == (first.frozen_digest, first.frozen_at)
    assert restored == content == path.read_bytes()
    assert (edited.holds, edited.digest_matches, edited.changed) == (False, False, 1)
    assert _verify(archive, edition_id).holds


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_warc_file_that_is_gone_or_not_what_was_sealed_is_found(archive: Archive, edition_id: int) -> None:
    _freeze(archive, edition_id)
    with archive.database.read() as session:
        path = archive.home / session.scalars(select(WarcFile.path).order_by(WarcFile.id)).all()[0]
    content = path.read_bytes()
    harms: list[Callable[[Path], None]] = [lambda _path: None, _cut, _flip, Path.unlink]
    told = []
    for harm in harms:
        path.write_bytes(content)
        harm(path)
        found, glanced = _verify(archive, edition_id), _verify(archive, edition_id, quick=True)
        told.append((found.holds, glanced.holds, found.files, found.files_missing, found.files_damaged))
        assert (found.missing, found.changed, found.digest_matches) == (0, 0, True)

    assert told == [(True, True, 1, 0, 0), (False, False, 1, 0, 1), (False, True, 1, 0, 1), (False, False, 1, 1, 0)]
    assert path.name in found.examples[0]


def test_two_years_are_not_compared_by_a_list_that_was_edited(archive: Archive, edition_id: int) -> None:
    later = adopt(archive, "example", 2026, executions=("example-2",), seeds=(SITE,))
    _, path = _freeze(archive, edition_id)

    with pytest.raises(EditionNotReady, match="holdfast edition report --year 2025"):
        write_comparison(archive.database, archive.home, archive.clock, edition_id, later)
    for one in (edition_id, later):
        write_report(archive.database, archive.home, archive.clock, one)
    told = write_comparison(archive.database, archive.home, archive.clock, edition_id, later)[0]["counts"]
    path.write_bytes(b"no json\n")
    with pytest.raises(FrozenListDamaged, match="edition verify"):
        write_comparison(archive.database, archive.home, archive.clock, edition_id, later)

    assert (told["unchanged"], told["gone"], told["new"]) == (1, 1, 0)


def test_a_row_cannot_lead_readers_out_of_the_editions(archive: Archive, edition_id: int) -> None:
    _freeze(archive, edition_id)
    (archive.home.parent / "outside.jsonl").write_text("{}\n")
    with archive.database.write() as session:
        session.execute(update(Edition).values(frozen_path="../outside.jsonl"))

    with asking(archive) as client:
        assert client.get("/api/coverage/example/2025/frozen.jsonl").status_code == 404
    with pytest.raises(EditionNotReady, match="is gone"):
        _verify(archive, edition_id)


def test_a_damaged_report_is_not_found_rather_than_an_error(archive: Archive, edition_id: int) -> None:
    _, folder = write_report(archive.database, archive.home, archive.clock, edition_id)
    (folder / "coverage-report.json").write_text('{"half')

    with asking(archive) as client:
        answer = client.get("/api/coverage/example/2025/coverage-report.json")

    assert (answer.status_code, answer.json()["code"]) == (404, "artefact_not_found")


def test_a_file_is_cleared_once_after_a_withdrawal_and_others_come_back_meanwhile(
    archive: Archive, edition_id: int
) -> None:
    write_report(archive.database, archive.home, archive.clock, edition_id)
    place, address = archive.home / "cache/editions/example-2025", "/api/coverage/example/2025/coverage.csv"
    with asking(archive) as client:
        client.get(address)
        assert not place.exists()
        hiding.hide(archive.database, archive.clock, f"{SITE}page", reason="asked for")
        with_lock = place / ".coverage.csv.lock"
        with_lock.parent.mkdir(parents=True)
        with alone(with_lock, EditionBusy("mine")):
            busy = client.get(address)
        first, made = client.get(address).text, [path.name for path in place.glob("coverage.csv.*")]
        again, kept = client.get(address).text, [path.name for path in place.glob("coverage.csv.*")]
        hiding.hide(archive.database, archive.clock, f"{SITE}gone", reason="asked for")
        second, now = client.get(address).text, [path.name for path in place.glob("coverage.csv.*")]

    assert (busy.status_code, busy.json()["code"]) == (503, "copy_busy")
    assert (first, made) == (again, kept)
    assert len(made) == len(now) == 1
    assert made != now
    assert [f"{SITE}gone" in text for text in (first, second)] == [True, False]
    assert f"{SITE}page," not in first


def test_what_is_withdrawn_is_looked_up_and_never_read_whole(archive: Archive, edition_id: int) -> None:
    _freeze(archive, edition_id)
    hiding.hide(archive.database, archive.clock, f"{SITE}page", reason="asked for")

    def ask() -> None:
        with archive.database.read() as session:
            assert is_any_withdrawn(session)
            withdrawn_among(session, keys={"a", "b"}, snapshots={3, 4})
            last_attempts(session, [1, 2], {1, 2}, {"example.org"})
            queries.captures_of_pages(session, [1, 2], {1, 2})
            queries.unaccounted(session)

    plan = asked(archive.database, ask)

    for table in ("withdrawals", "snapshots", "pages", "page_crawls", "jobs", "executions"):
        assert f"SCAN {table}\n" not in f"{plan}\n"
        assert f"Seq Scan on {table}" not in plan
