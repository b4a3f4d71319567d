"""What opens members' captures on the replay host: made by one process, read by all, and by no other key."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select

from holdfast.db.engine import Database
from holdfast.db.models import ReplayKey
from holdfast.db.schema import make_fresh
from holdfast.errors import Unavailable
from holdfast.replay import capabilities
from holdfast.replay.capabilities import ReplayKeys, split_root, without_capability
from tests.clock import FakeClock

_DAY = 86_400.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty archive."""
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with closing(Database(url)) as opened:
        yield opened


def _keys(database: Database, clock: FakeClock) -> ReplayKeys:
    return ReplayKeys(database, clock, lasts_s=3600.0)


def _capability(root: str) -> str:
    assert root.startswith("/!")
    return root[2:]


def test_what_one_process_signs_every_process_reads(database: Database) -> None:
    clock = FakeClock()
    text = _capability(_keys(database, clock).root(7))
    other = _keys(database, clock)

    assert not other.knows(text)
    found = other.read(text)

    assert found is not None
    source_id, ends_at = found
    assert source_id == 7
    assert (ends_at - clock.now()).total_seconds() == pytest.approx(3600, abs=1)
    assert other.knows(text)


def test_it_ends(database: Database) -> None:
    clock = FakeClock()
    keys = _keys(database, clock)
    text = _capability(keys.root(7))

    clock.shift_wall(3599)
    assert keys.read(text) is not None
    clock.shift_wall(2)
    assert keys.read(text) is None


def test_no_bit_of_it_can_be_changed(database: Database) -> None:
    keys = _keys(database, FakeClock())
    text = _capability(keys.root(7))
    raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))

    for bit in range(8 * len(raw)):
        turned = bytearray(raw)
        turned[bit // 8] ^= 1 << bit % 8
        assert keys.read(urlsafe_b64encode(bytes(turned)).rstrip(b"=").decode()) is None
    for odd in ("", "x", text[:-2], text + "AA", "é", "A" * 44):
        assert keys.read(odd) is None


def test_another_archive_reads_nothing_of_it(database: Database, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'other.db'}"
    make_fresh(url)
    with closing(Database(url)) as elsewhere:
        theirs = _keys(elsewhere, FakeClock())
        theirs.root(7)

        assert theirs.read(_capability(_keys(database, FakeClock()).root(7))) is None


def test_keys_are_renewed_and_old_ones_forgotten(database: Database) -> None:
    clock = FakeClock()
    keys = _keys(database, clock)
    first = keys.root(7)
    clock.shift_wall(7 * _DAY - 60)
    before = _capability(keys.root(7))
    clock.shift_wall(120)
    after = _capability(keys.root(7))

    assert keys.read(before) is not None, "what the old key signed holds until it ends"
    assert keys.read(after) is not None
    clock.shift_wall(15 * _DAY)
    keys.root(7)
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(ReplayKey)) == 1
    assert keys.read(_capability(first)) is None


def test_a_path_is_parted_from_its_capability() -> None:
    assert split_root("/!abc-_9/web/2024/http://a.org/") == ("abc-_9", "/web/2024/http://a.org/")
    assert split_root("/web/2024/http://a.org/!x/") == ("", "/web/2024/http://a.org/!x/")
    assert split_root("/!abc") == ("abc", "/")
    assert split_root("/!a b/web/") == ("", "/!a b/web/")
    assert without_capability("/!secret/web/2024/http://a.org/") == "/web/2024/http://a.org/"


def test_a_server_on_a_read_only_disk_signs_with_keys_of_its_own_for_ever(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_given: object, **_options: object) -> object:
        raise Unavailable("the disk is read-only")

    clock = FakeClock()
    keys = _keys(database, clock)
    monkeypatch.setattr(capabilities, "_add_key", refuse)
    for _ in range(30):
        text = _capability(keys.root(7))
        assert keys.read(text) is not None
        clock.shift_wall(_DAY)
