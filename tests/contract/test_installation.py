"""Values of the whole installation: the contact and the archive's id, kept in the database for every process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast import config
from holdfast.api.session_cookie import cookie_name
from holdfast.config import Settings
from holdfast.db.audit_events import acting
from holdfast.db.engine import Database
from holdfast.db.installation import archive_id
from holdfast.db.models import AuditEvent
from holdfast.db.schema import prepare
from holdfast.sources.contact import ContactMissing, contact_of, remember_contact
from tests.old_schemas import make_old


def machine(folder: Path, database_url: str) -> Settings:
    """Return the settings of a machine with a data directory of its own and no contact in its environment."""
    return config.load(home=folder, database_url=database_url).model_copy(update={"contact": None})


def test_contact_reaches_workers_on_other_machines(database_url: str, tmp_path: Path) -> None:
    server, worker = machine(tmp_path / "server", database_url), machine(tmp_path / "worker", database_url)
    with pytest.raises(ContactMissing):
        contact_of(worker)

    remember_contact(server, "us@example.org")

    assert contact_of(worker) == "us@example.org"
    assert not (server.home / "contact").exists()


def test_contact_change_is_audited_once(database_url: str, tmp_path: Path) -> None:
    settings = machine(tmp_path, database_url)
    with acting("ada"):
        for contact in ("us@example.org", "us@example.org", "you@example.org"):
            remember_contact(settings, contact)

    with closing(Database(database_url)) as database, database.read() as session:
        found = session.scalars(select(AuditEvent).where(AuditEvent.action == "contact.changed")).all()
    assert [(one.actor, one.detail) for one in found] == [
        ("ada", {"before": None, "after": "us@example.org"}),
        ("ada", {"before": "us@example.org", "after": "you@example.org"}),
    ]


def test_contact_is_whole_while_many_threads_write_it(database_url: str, tmp_path: Path) -> None:
    settings = machine(tmp_path, database_url)
    prepare(settings)

    def write(number: int) -> str:
        remember_contact(settings, f"n{number}@example.org")
        return contact_of(settings)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(write, range(40)))
    assert set(found) <= {f"n{number}@example.org" for number in range(40)}


def test_contact_file_of_older_programs_is_read(tmp_path: Path) -> None:
    make_old(f"sqlite:///{tmp_path / 'holdfast.db'}", "0031")
    (tmp_path / "contact").write_text("old@example.org\n")
    settings = config.load(home=tmp_path).model_copy(update={"contact": None})

    assert contact_of(settings) == "old@example.org"
    remember_contact(settings, "new@example.org")
    assert contact_of(settings) == "new@example.org"


def test_servers_of_one_database_share_the_cookie_name(database_url: str, tmp_path: Path) -> None:
    one, two = (machine(tmp_path / name, database_url) for name in ("one", "two"))
    prepare(one)
    name = cookie_name(one)
    archive_id.cache_clear()  # as in another process

    assert cookie_name(two) == name


def test_two_databases_have_two_cookie_names(database_url: str, tmp_path: Path) -> None:
    one, two = machine(tmp_path / "one", database_url), config.load(home=tmp_path / "two")
    for settings in (one, two):
        prepare(settings)

    assert cookie_name(one) != cookie_name(two)
