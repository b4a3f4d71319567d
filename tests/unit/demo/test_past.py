"""Earlier crawls: a sound WARC file with the dates of the past, which says that they are invented."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType

from holdfast.clock import SystemClock
from holdfast.demo.marsh import marsh_content
from holdfast.demo.past import NOTE, write_past
from holdfast.warc.verify import verify_file

ORIGIN = "http://marsh.kelpsound.example"
MOMENT = datetime(2025, 3, 4, 13, 20, tzinfo=UTC)


def test_an_earlier_crawl_is_a_sound_file_that_says_what_it_is(tmp_path: Path) -> None:
    content = marsh_content(ORIGIN, is_later=False)

    path = write_past(tmp_path, content, origin=ORIGIN, moment=MOMENT, clock=SystemClock())

    report = verify_file(path)
    with path.open("rb") as stream:
        records = [
            (record.record_type, record.record_date, record.headers.get("WARC-Target-URI") or "", record.reader.read())
            for record in ArchiveIterator(stream, parse_http=False)
        ]
    kinds = [kind for kind, *_ in records]
    dates = [date for kind, date, *_ in records if kind == WarcRecordType.response]
    urls = {url for kind, _, url, _ in records if kind == WarcRecordType.response}
    assert (report.ok, kinds.count(WarcRecordType.warcinfo)) == (True, 1)
    assert NOTE.encode() in records[0][3]
    assert records[0][1].year > MOMENT.year, "the file itself was made when the demo ran"
    assert dates[0] == MOMENT
    assert dates == sorted(set(dates))
    assert {date.date() for date in dates} == {MOMENT.date()}
    assert {f"{ORIGIN}/", f"{ORIGIN}/robots.txt", f"{ORIGIN}/home", f"{ORIGIN}/style.css"} <= urls
    assert not any("/private/" in url for url in urls), "robots.txt forbids it"
