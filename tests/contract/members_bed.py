"""An archive of a public source and one for members that overlap in everything, and readers of each role."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import select

from holdfast.api.session_cookie import cookie_name
from holdfast.auth.credentials import csrf_token
from holdfast.auth.roles import Permission, Role
from holdfast.auth.sessions import Browser, begin_session
from holdfast.auth.tokens import make_token
from holdfast.auth.users import add_user
from holdfast.changes.compute import compute_pending
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.editions.comparison import write_comparison
from holdfast.editions.freezing import freeze
from holdfast.editions.report import write_report
from holdfast.search.outbox import drain
from holdfast.sources import registry
from holdfast.sources.queries import find_source
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.viewers import EVERYTHING, seen_by
from tests.archive import Shot, build_archive, days_later
from tests.client import APP, REPLAY, Client, asking
from tests.editions_bed import adopt
from tests.postgres import Postgres

MEMBERS = (Role.MEMBER, Role.OPERATOR, Role.ADMINISTRATOR)
"""Who sees what is for members."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two sources, and what only it says."""

    code: str
    host: str
    word: str
    """Of its texts, and of no others."""
    executions: tuple[int, int]
    """In the order in which they are written: those of `club` come first."""

    @property
    def own(self) -> str:
        """A page that only this source has."""
        return f"https://{self.host}/page"


CLUB = Side("club", "club.example.org", "zanzibar", (1, 2))
OPEN = Side("open", "public.example.org", "madagascar", (3, 4))
MIXED = "https://shared.example.org/mixed"
"""Captured by both, with texts of their own."""
SAME = "https://shared.example.org/same"
"""Captured by both on one day with one text, by members first: the public capture counts as its duplicate."""
REVISITED = "https://shared.example.org/revisited"
"""Captured by members; of the public source there is only a revisit, which shows the body of theirs."""
NAMED = "mauritius"
"""What a link of the members' source calls the page of the public one."""
BORROWED = "reunion"
"""The word of the body that is revisited."""


_PARTS = (
    *("harbour", "lighthouse", "market", "station", "library", "garden", "museum", "theatre", "bakery", "school"),
    *("river", "bridge", "castle", "forest", "meadow", "village", "church", "tower", "square", "street"),
)


def _page(word: str, number: int, more: str = "") -> str:
    # Long enough to have a fingerprint: the two texts of a page are near-duplicates.
    told = " ".join(f"{word} {part} of the {word} island" for part in _PARTS)
    text = f"The {word} of crawl {number}: {told}."
    return f"<html><head><title>{word} {number}</title></head><body><main><p>{text}</p>{more}</main></body></html>"


def _shots() -> list[Shot]:
    shots = []
    for side in (CLUB, OPEN):
        for turn, number in enumerate((1, 2)):
            link = f'<p><a href="{OPEN.own}">{NAMED}</a></p><img src="/{side.code}.png">' if side is CLUB else ""
            day = days_later(10 * turn + (0 if side is CLUB else 0.2))
            for url in (side.own, MIXED):
                body = _page(side.word, number, link)
                shots.append(Shot(url=url, body=body, moment=day, source=side.code, execution=number))
            picture = f"https://{side.host}/{side.code}.png"
            shots.append(
                Shot(url=picture, body=b"\x89PNG\r\n", media_type="image/png", moment=day, source=side.code,
                     execution=number)
            )  # fmt: skip
        shots.append(Shot(url=SAME, body=_page("comoros", 1), moment=day, source=side.code, execution=2))
    shots.append(Shot(url=REVISITED, body=_page(BORROWED, 1), moment=days_later(1), source="club", execution=1))
    shots.append(Shot(url=REVISITED, same_as=REVISITED, moment=days_later(12), source="open", execution=2))
    return shots


_ADMIN_TOKEN = "the admin token of this test"


def _credentials(archive: Archive) -> dict[Role, dict[str, str]]:
    """Return what each role shows, each signed in another way: nothing, a session, a token, the admin token."""
    with archive.database.write() as session:
        member = add_user(session, archive.clock, name="a-member", role=Role.MEMBER)
        browser = Browser(address="127.0.0.1", agent="test")
        secret = begin_session(session, archive.clock, member, browser, settings=archive.settings.auth).secret
        operator = add_user(session, archive.clock, name="an-operator", role=Role.OPERATOR)
        scopes = frozenset({Permission.READ, Permission.OPERATE})
        token = make_token(session, archive.clock, operator, name="a test", scopes=scopes).secret
    return {
        Role.ANONYMOUS: {},
        Role.MEMBER: {"Cookie": f"{cookie_name(archive.settings)}={secret}", "X-CSRF-Token": csrf_token(secret)},
        Role.OPERATOR: {"Authorization": f"Bearer {token}"},
        Role.ADMINISTRATOR: {"X-Admin-Token": _ADMIN_TOKEN},
    }


@dataclass(slots=True)
class World:
    """The archive, two servers on it, and which captures are whose."""

    archive: Archive
    servers: Sequence[Client]
    ids: dict[str, list[int]] = field(default_factory=dict)
    """The captures of each source, by its code."""
    credentials: dict[Role, dict[str, str]] = field(default_factory=dict)

    def ask(self, url: str, role: Role, *, server: int = 0, method: str = "GET", **options: Any) -> httpx.Response:
        """Return the answer to a request of somebody of a role; nobody signs in at the replay host."""
        headers = dict(options.pop("headers", {}))
        if not url.startswith(REPLAY):
            headers |= self.credentials[role]
            # A session is believed only from pages of this host where something is sent.
            headers |= {"Origin": APP} if method != "GET" and role is Role.MEMBER else {}
        return self.servers[server].request(method, url, headers=headers, **options)

    def followed(self, url: str, role: Role, **options: Any) -> httpx.Response:
        """Return the answer at the end of redirects, as a browser of a role gets it."""
        answer = self.ask(url, role, **options)
        for _ in range(4):
            if answer.status_code not in (302, 307):
                break
            answer = self.ask(str(answer.url.join(answer.headers["location"])), role, **options)
        return answer

    def told(self, url: str, role: Role) -> str:
        """Return what is answered, with where it leads; nothing where it is not found."""
        answer = self.followed(url, role)
        assert answer.status_code < 400 or answer.status_code == 404, answer.text
        led = "".join(str(one) for one in (answer.headers.get("location", ""), answer.headers.get("link", "")))
        return f"{led}{answer.text}" if answer.status_code < 400 else ""

    def show(self, visibility: str) -> None:
        """Let the source of members be seen so, at once."""
        with self.archive.database.write() as session:
            registry.edit(session, self.archive.clock, CLUB.code, {"visibility": visibility})


def _editions(archive: Archive, side: Side) -> None:
    """Make an edition of each crawl, the first frozen, and compare the two."""
    made = []
    for number, year in enumerate((2024, 2025), 1):
        made.append(adopt(archive, side.code, year, executions=(f"{side.code}-{number}",), seeds=(side.own,)))
        write_report(archive.database, archive.home, archive.clock, made[-1])
    freeze(archive.database, archive.home, archive.clock, made[0])
    write_comparison(archive.database, archive.home, archive.clock, *made)


def _settings(settings: Settings) -> Settings:
    api = settings.api.model_copy(update={"rate_limiting": False, "admin_token": SecretStr(_ADMIN_TOKEN)})
    return settings.model_copy(update={"api": api})


@contextmanager
def open_world(request: pytest.FixtureRequest, template: Path, home: Path) -> Iterator[World]:
    """Build the archive on the kind of database that a test asks for, and serve it twice."""
    url = f"sqlite:///{home / 'holdfast.db'}"
    if request.param == "sqlite":
        shutil.copy(template, home / "holdfast.db")
    else:
        served: Postgres = request.getfixturevalue("postgres")
        url = served.fresh()
    # As commands and workers do it.
    with seen_by(EVERYTHING):
        archive = build_archive(home, _shots(), database_url=url)
        compute_pending(archive.database, archive.clock)
        with archive.database.write() as session:
            registry.edit(session, archive.clock, CLUB.code, {"visibility": "members"})
        drain(archive.database, archive.home, archive.clock)
        for side in (CLUB, OPEN):
            _editions(archive, side)
    second = Database(url)
    settings = _settings(archive.settings)
    made = [Archive(settings=settings, database=one, clock=archive.clock) for one in (archive.database, second)]
    with asking(made[0]) as first, asking(made[1]) as other:
        world = World(made[0], (first, other), credentials=_credentials(made[0]))
        with archive.database.read() as session:
            for side in (CLUB, OPEN):
                source = find_source(session, side.code)
                wanted = select(Snapshot.id).where(Snapshot.source_id == source.id).order_by(Snapshot.id)
                world.ids[side.code] = list(session.scalars(wanted))
        yield world
    second.close()
    archive.database.close()
