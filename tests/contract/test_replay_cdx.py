"""The CDX server on both databases: every parameter, both vocabularies, and no parameter that breaks it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import NotFound
from holdfast.replay.cdx.question import BadCdxParameter, read_question
from holdfast.replay.cdx.server import CdxServer
from holdfast.replay.finding import candidates
from holdfast.replay.origins import origins_of
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later
from tests.client import APP, REPLAY, asking
from tests.clock import FakeClock

HERE = origins_of("http", "localhost:8060", replay_origin=None)
ROOT = "http://example.org/"
SHOTS = (
    *(Shot(url=ROOT, body=f"<p>{day // 2}</p>", moment=days_later(day), execution=1) for day in range(6)),
    Shot(url=ROOT, same_as=ROOT, body="", moment=days_later(6), execution=2),
    Shot(url="https://www.example.org/", body="<p>https</p>", moment=days_later(7), execution=3),
    *(Shot(url=f"{ROOT}a/{name}", body="<p>x</p>", moment=days_later(1)) for name in "bcd"),
    Shot(url=f"{ROOT}i.png", body=b"\x89PNG\r\n\x1a\n", media_type="image/png"),
    Shot(url=f"{ROOT}old", status=301, headers={"Location": "/new"}, body=""),
    Shot(url="http://sub.example.org/x", body="<p>sub</p>"),
    Shot(url="http://example.org:8080/port", body="<p>port</p>"),
    Shot(url="http://example.organic/", body="<p>other</p>"),
)  # fmt: skip


class Asker:
    """Asks the server in process, and over HTTP where the transport matters."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive

    def text(self, **parameters: Any) -> str:
        """Return the whole answer; a list asks for a parameter more than once."""
        pairs = [
            (name, str(one))
            for name, value in parameters.items()
            for one in (value if isinstance(value, list) else [value])
        ]
        return "".join(CdxServer(self.archive.database).answer(read_question(pairs), HERE))

    def lines(self, **parameters: Any) -> list[list[str]]:
        """Return the words of each line."""
        return [line.split(" ") for line in self.text(**parameters).splitlines()]

    def days(self, **parameters: Any) -> list[str]:
        """Return the day of each capture."""
        return [words[0][6:8] for words in self.lines(fl="timestamp", **parameters)]

    def urls(self, **parameters: Any) -> list[str]:
        """Return each address without the site."""
        return [words[0].replace(ROOT, "/") for words in self.lines(fl="original", **parameters)]


@contextmanager
def opened(home: Path, url: str | None = None) -> Iterator[Asker]:
    archive = build_archive(home, SHOTS, database_url=url)
    yield Asker(archive)
    archive.database.close()


@pytest.fixture
def both(migrated_url: str, tmp_path: Path) -> Iterator[Asker]:
    """An index on each kind of database."""
    with opened(tmp_path / "home", migrated_url) as asker:
        yield asker


@pytest.fixture(scope="module")
def cdx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """One index on SQLite that many tests read."""
    with opened(tmp_path_factory.mktemp("cdx") / "home") as asker:
        yield asker


def test_the_order_the_ranges_and_the_places_are_the_same_on_both_databases(both: Asker) -> None:
    assert both.days(url="example.org") == ["01", "02", "03", "04", "05", "06", "07", "08"]
    assert both.urls(url="example.org/a/*") == ["/a/b", "/a/c", "/a/d"]
    everything = both.urls(url="*.example.org")
    assert len(everything) == 15
    assert everything[-2:] == ["http://sub.example.org/x", "http://example.org:8080/port"]
    assert both.urls(url="example.org", matchType="host", limit=-2) == ["/i.png", "/old"]
    assert both.urls(url="*.example.org", sort="reverse") == everything[::-1]
    assert both.days(url=ROOT, closest="20240304", limit=3) == ["04", "05", "03"]
    assert both.days(url=ROOT, closest="20240305120000", limit=3) == ["05", "04", "06"]
    told: list[str] = []
    key = ""
    while True:
        lines = both.text(url="*.example.org", fl="original", limit=4, showResumeKey="true", resumeKey=key).splitlines()
        told += [line.replace(ROOT, "/") for line in (lines[:-2] if "" in lines else lines)]
        if "" not in lines:
            break
        key = lines[-1]
    assert told == everything


NASTY = ["urn:\0", "\0", "http://\0/", "urn:\ud800", "é", "%00", "http://[", "'; DROP TABLE snapshots; --", "x" * 8000]


def test_nasty_addresses_are_answered_or_refused_on_both_databases(both: Asker) -> None:
    for nasty in NASTY:
        for parameters in ({"url": nasty}, {"url": f"{nasty}*"}, {"url": nasty, "matchType": "domain"}):
            with suppress(BadCdxParameter):
                both.text(**parameters)
        with both.archive.database.read() as session, pytest.raises(NotFound):
            candidates(session, nasty, "2024")
    packed = base64.urlsafe_b64encode(json.dumps(["a\0b", 1, 1]).encode()).decode()
    with pytest.raises(BadCdxParameter):
        both.text(url="x", resumeKey=packed)


def test_the_default_line_has_the_wayback_fields(cdx: Asker) -> None:
    assert cdx.lines(url=ROOT, limit=1)[0][:5] == ["org,example)/", "20240301120000", ROOT, "text/html", "200"]
    assert cdx.lines(url=ROOT, limit=1)[0][5].startswith("sha256:")


def test_json_is_an_array_for_the_wayback_and_lines_for_pywb(cdx: Asker) -> None:
    array = json.loads(cdx.text(url=ROOT, output="json", limit=2))
    lines = [json.loads(line) for line in cdx.text(url=ROOT, output="json", limit=2, fields="url,status").splitlines()]

    assert array[0] == ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
    assert (len(array), array[1][2]) == (3, ROOT)
    assert lines == [{"url": ROOT, "status": "200"}] * 2
    assert json.loads(cdx.text(url="nowhere.example", output="json")) == []


def test_cdxj_names_the_file_and_the_place_of_a_record(cdx: Asker) -> None:
    key, stamp, rest = cdx.text(url=ROOT, output="cdxj", limit=1).rstrip("\n").split(" ", 2)

    assert (key, stamp) == ("org,example)/", "20240301120000")
    assert json.loads(rest)["filename"].endswith(".warc.gz")
    assert json.loads(rest)["offset"].isdigit()


def test_link_is_a_time_map(cdx: Asker) -> None:
    told = cdx.text(url=ROOT, output="link", limit=2)

    assert told.count('rel="memento"') == 2
    assert "<http://replay.localhost:8060/web/20240301120000/http://example.org/>" in told


def test_from_and_to_are_padded_and_inclusive(cdx: Asker) -> None:
    assert cdx.days(url=ROOT, **{"from": "20240303", "to": "20240305"}) == ["03", "04", "05"]
    assert cdx.days(url=ROOT, to="20240302") == ["01", "02"]
    assert cdx.urls(url="example.org/*", **{"from": "20240308"}) == ["https://www.example.org/"]


def test_a_negative_limit_gives_the_last_ones_in_order(cdx: Asker) -> None:
    assert cdx.days(url=ROOT, limit=-2) == ["07", "08"]
    assert cdx.days(url=ROOT, limit=-1, fastLatest="true") == ["08"]
    assert cdx.days(url=ROOT, limit=-2, collapse="digest") == ["05", "08"]


def test_an_offset_skips_what_would_be_shown(cdx: Asker) -> None:
    assert cdx.days(url=ROOT, offset=2, limit=2) == ["03", "04"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["statuscode:301"], ["/old"]), (["!statuscode:200"], ["/old"]), (["=status:301"], ["/old"]),
        (["status:30"], ["/old"]), (["~status:3.."], ["/old"]), (["mimetype:image/.*"], ["/i.png"]),
        (["mime:image"], ["/i.png"]), (["!mime:html"], ["/i.png"]), (["original:.*/a/.*", "!~url:.*/[cd]$"], ["/a/b"]),
        (["url:/a/c"], ["/a/c"]), (["urlkey:org,example\\)/a/[bc]"], ["/a/b", "/a/c"]), (["urlkey:/a/d"], ["/a/d"]),
    ],
)  # fmt: skip
def test_filters_speak_both_languages(cdx: Asker, filters: list[str], found: list[str]) -> None:
    lines = cdx.urls(url="example.org/*", filter=filters)

    assert [line for line in lines if line not in ("/", "https://www.example.org/")] == found


def test_neighbours_collapse_by_a_field_or_its_first_characters(cdx: Asker) -> None:
    assert cdx.days(url=ROOT, collapse="digest") == ["01", "03", "05", "08"]
    assert cdx.days(url=ROOT, collapse="timestamp:6") == ["01"]
    assert cdx.urls(url="example.org/*", collapse="urlkey") == ["/", "/a/b", "/a/c", "/a/d", "/i.png", "/old"]


def test_counters_tell_what_was_left_out(cdx: Asker) -> None:
    told = cdx.lines(url=ROOT, fl="timestamp", collapse="digest", showSkipCount="true", lastSkipTimestamp="true")
    twice = cdx.lines(url=ROOT, fl="timestamp", showDupeCount="true")

    assert [words[1:] for words in told] == [
        ["1", "20240302120000"], ["1", "20240304120000"], ["2", "20240307120000"], ["0", "-"]
    ]  # fmt: skip
    assert [words[1] for words in twice] == ["0", "1", "0", "1", "0", "1", "2", "0"]


def test_a_resume_key_goes_on_behind_a_collapsed_run(cdx: Asker) -> None:
    first = cdx.text(url=ROOT, fl="timestamp", collapse="digest", limit=2, showResumeKey="true").splitlines()
    rest = cdx.days(url=ROOT, collapse="digest", resumeKey=first[-1])

    assert [line[6:8] for line in first[:2]] == ["01", "03"]
    assert rest == ["05", "08"]


def test_no_resume_key_where_nothing_is_left(cdx: Asker) -> None:
    assert "" not in cdx.text(url=ROOT, limit=8, showResumeKey="true").splitlines()
    assert json.loads(cdx.text(url=ROOT, limit=3, output="json", showResumeKey="true"))[-2] == []


def test_revisits_are_resolved_on_request(cdx: Asker) -> None:
    plain = cdx.lines(url=ROOT, fl="mimetype,orig.filename", filter="mimetype:warc/revisit")
    resolved = cdx.lines(url=ROOT, fl="orig.length,orig.offset,orig.filename", resolveRevisits="true", limit=-2)

    assert plain == [["warc/revisit", "-"]]
    assert resolved[0][0].isdigit()
    assert resolved[0][2].endswith(".warc.gz")
    assert resolved[1] == ["-", "-", "-"]


def test_pages_are_counted_and_cut(cdx: Asker) -> None:
    assert cdx.text(url="*.example.org", showNumPages="true") == "1\n"
    assert json.loads(cdx.text(url="*.example.org", showNumPages="true", output="json"))["pages"] == 1
    assert cdx.text(url="*.example.org", showPagedIndex="true") == "org,example)/ 20240301120000\t0\n"
    assert len(cdx.lines(url="*.example.org", page=0)) == 15
    with pytest.raises(BadCdxParameter, match="Page 1 invalid: First Page is 0, Last Page is 0"):
        cdx.text(url="*.example.org", page=1)
    assert cdx.text(url="nothing.example", page=0, output="json") == "[]\n"
    assert cdx.text(url="nowhere.example", showNumPages="true") == "0\n"


def test_a_range_goes_on_from_a_key(cdx: Asker) -> None:
    assert cdx.urls(url="example.org/old", matchType="range")[0] == "/old"
    assert "http://example.organic/" in cdx.urls(url="example.org/old", matchType="range")


def test_the_transport_is_compressed_unless_it_is_told_not_to(cdx: Asker) -> None:
    with asking(cdx.archive) as client:
        packed = client.get("/cdx", params={"url": ROOT}, headers={"Accept-Encoding": "gzip"})
        plain = client.get("/cdx", params={"url": ROOT, "gzip": "false"}, headers={"Accept-Encoding": "gzip"})
        other = client.get("/cdx/search/cdx", params={"url": ROOT})
        refused = client.get("/cdx")

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text == other.text
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_cdx_parameter")


@pytest.mark.parametrize(
    "parameters",
    [{}, {"url": ""}, {"url": "x", "matchType": "all"}, {"url": "x", "limit": "many"}, {"url": "x", "from": "2024-01"},
     {"url": "x", "filter": "status"}, {"url": "x", "filter": "nothing:1"}, {"url": "x", "filter": "~url:(?=x)"},
     {"url": "x", "filter": "~url:(a{1000}){1000}"}, {"url": "x", "fl": "nothing"},
     {"url": "x", "collapse": "digest:x"}, {"url": "x", "collapse": "nothing"},
     {"url": "x", "output": "xml"}, {"url": "x", "resumeKey": "none"},
     {"url": "x*", "closest": "2024"}, {"url": "x", "sort": "random"}, {"url": "x", "pageSize": "0"},
     {"url": "x", "page": "-1"}, {"url": "x", "offset": "-1"}],
)  # fmt: skip
def test_a_parameter_that_cannot_be_used_is_named(parameters: dict[str, str]) -> None:
    with pytest.raises(BadCdxParameter):
        read_question(parameters.items())


NAMES = ["url", "matchType", "from", "to", "limit", "offset", "sort", "closest", "filter", "fl", "fields", "collapse",
         "output", "showResumeKey", "resumeKey", "page", "pageSize", "showNumPages", "showPagedIndex", "gzip",
         "fastLatest",
         "resolveRevisits", "showDupeCount", "showSkipCount", "lastSkipTimestamp"]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(["true", "false", "example.org", "*.example.org", "example.org/*", "exact", "domain", "range", "-1",
                     "0", "2", "2024", "json", "cdxj", "link", "digest", "timestamp:4", "!status:200", "~url:.*",
                     "reverse",
                     "closest", "url,mime", "urlkey,orig.length", "*", "http://[", "20240301120000", "W10", "null"]),
    st.text(max_size=20),
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pairs=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=8))
def test_any_parameters_are_answered_or_refused(cdx: Asker, pairs: list[tuple[str, str]]) -> None:
    try:
        question = read_question([("url", "example.org"), *pairs])
    except BadCdxParameter:
        return
    for piece in CdxServer(cdx.archive.database).answer(question, HERE):
        assert isinstance(piece, str)


class _Ticking(FakeClock):
    """A clock on which everything takes a while."""

    def monotonic(self) -> float:
        """Return the time, a second later at each look."""
        self.advance(1.0)
        return super().monotonic()


@pytest.mark.parametrize("output", ["text", "json"])
def test_an_answer_that_takes_long_ends_with_a_resume_key_and_misses_nothing(cdx: Asker, output: str) -> None:
    found, key, answers = [], "", 0
    while answers == 0 or key:
        pairs = {"url": "*.example.org", "filter": "original:.*/(old|port)", "fl": "original", "showResumeKey": "true",
                 "resumeKey": key, "output": output}  # fmt: skip
        server = CdxServer(cdx.archive.database, clock=_Ticking())
        text = "".join(server.answer(read_question(pairs.items()), HERE))
        rows = [row[:1] for row in json.loads(text)[1:]] if output == "json" else [[row] for row in text.splitlines()]
        key = rows[-1][0] if [] in rows or [""] in rows else ""
        found += [row[0] for row in rows if row and row[0] not in ("", key)]
        answers += 1

    assert answers > 1
    assert found == [f"{ROOT}old", "http://example.org:8080/port"]


def test_more_filters_than_eight_are_refused(cdx: Asker) -> None:
    assert cdx.text(url=ROOT, filter=["status:200"] * 8)
    with pytest.raises(BadCdxParameter):
        cdx.text(url=ROOT, filter=["status:200"] * 9)


def test_long_queries_are_answered_over_http_on_both_hosts_and_counted_together(cdx: Asker) -> None:
    with asking(cdx.archive) as client:
        answers = [client.get(f"{host}/cdx", params={"url": "*.example.org"}) for host in (APP, REPLAY)]

    assert {answer.status_code for answer in answers} == {200}
    assert answers[0].text == answers[1].text != ""
