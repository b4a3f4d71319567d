"""Which originals a crawl believes to be readable."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.clock import to_micros
from holdfast.crawl.storing import Originals
from holdfast.db import connect
from holdfast.db.schema import make_fresh
from holdfast.types import Original
from tests.clock import FakeClock
from tests.unit.crawl.bed import attempt


@pytest.mark.parametrize(
    ("stored", "is_believed"), [("a.warc.gz", True), ("../b.warc.gz", False), ("{outside}", False)]
)
def test_only_a_file_where_ours_may_lie_is_read(tmp_path: Path, stored: str, is_believed: bool) -> None:
    home, outside = tmp_path / "home", tmp_path / "b.warc.gz"
    home.mkdir()
    (home / "a.warc.gz").write_bytes(b"x")
    outside.write_bytes(b"x")
    address, now = f"sqlite:///{home / 'holdfast.db'}", FakeClock().now()
    make_fresh(address)
    with closing(connect(address)) as raw_db:
        with raw_db.write() as tx:
            tx.execute("PRAGMA defer_foreign_keys=ON")
            tx.execute(
                "INSERT INTO sources(id,code,name,enabled,config,created_at,updated_at) VALUES (1,'s','s',1,'{}',0,0)"
            )
            tx.execute(
                "INSERT INTO jobs(id,source_id,kind,fingerprint,config,created_at) VALUES (1,1,'adhoc','f','{}',0)"
            )
            tx.execute(
                "INSERT INTO executions(id,job_id,number,state,config,output_dir,created_at,run_seconds)"
                " VALUES (1,1,1,'completed','{}','x',0,0)"
            )
            tx.execute(
                "INSERT INTO warc_files(id,execution_id,key,state,created_at) VALUES (1,1,?,'sealed',?)",
                (stored.format(outside=outside), to_micros(now)),
            )
        originals = Originals(raw_db, home)
        original = Original(record_id="r", url="http://a.test/", captured_at=now, payload_digest="sha256:0",
                            warc_file_id=1, offset=0)  # fmt: skip
        asked = attempt("http://a.test/", original=original)
        originals.learn([asked])

        assert originals.readable(asked) is is_believed


@pytest.mark.parametrize(
    ("visibility", "execution", "is_believed"), [("public", 2, True), ("members", 2, False), ("members", 1, True)]
)
def test_no_other_source_refers_to_what_is_for_members(
    tmp_path: Path, visibility: str, execution: int, is_believed: bool
) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"x")
    address, now = f"sqlite:///{tmp_path / 'holdfast.db'}", FakeClock().now()
    make_fresh(address)
    with closing(connect(address)) as raw_db:
        with raw_db.write() as tx:
            for number, word in ((1, visibility), (2, "public")):
                tx.execute(
                    "INSERT INTO sources(id,code,name,enabled,config,created_at,updated_at,visibility)"
                    " VALUES (?,?,'s',1,'{}',0,0,?)",
                    (number, f"s{number}", word),
                )
                tx.execute(
                    "INSERT INTO jobs(id,source_id,kind,fingerprint,config,created_at) VALUES (?,?,'adhoc',?,'{}',0)",
                    (number, number, f"f{number}"),
                )
                tx.execute(
                    "INSERT INTO executions(id,job_id,number,state,config,output_dir,created_at,run_seconds)"
                    " VALUES (?,?,1,'completed','{}','x',0,0)",
                    (number, number),
                )
            tx.execute(
                "INSERT INTO warc_files(id,execution_id,key,state,created_at) VALUES (1,1,'a.warc.gz','sealed',0)"
            )
        originals = Originals(raw_db, tmp_path, execution)
        original = Original(record_id="r", url="http://a.test/", captured_at=now, payload_digest="sha256:0",
                            warc_file_id=1, offset=0)  # fmt: skip
        asked = attempt("http://a.test/", original=original)
        originals.learn([asked])

        assert originals.readable(asked) is is_believed
