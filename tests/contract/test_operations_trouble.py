"""Operations under which the disk fills or the database blinks, on both databases: nothing is lost or slandered."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import NoSpace
from holdfast.imports import importer
from holdfast.operations.long_running import OperationState
from holdfast.operations.uploads import part_path
from tests.api_bed import Server
from tests.operations_bed import begun, operation, run_waiting, send, warc_bytes


def _package(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("datapackage.json", '{"profile": "data-package", "resources": []}')
        for name in names:
            archive.writestr(f"archive/{name}.warc.gz", warc_bytes(f"https://{name}.example/", body=f"<p>{name}</p>"))
    return out.getvalue()


def _failing(call: Callable[..., Any], error: Exception, *, at: int) -> Callable[..., Any]:
    """Return a function that does what another does, but for one call, which raises."""
    calls = 0

    def instead(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise error
        return call(*args, **named)

    return instead


def test_an_import_whose_disk_fills_keeps_the_upload_and_is_tried_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _package("one", "two", "three")
    place = begun(server, len(whole), filename="three.wacz")
    send(server, place, whole, 0)
    with monkeypatch.context() as patched:
        patched.setattr(importer, "write_new", _failing(importer.write_new, NoSpace("no room"), at=2))
        ended = run_waiting(server)
    failed = server.get(place).json()
    told = operation(server, failed["operationId"])
    part = part_path(server.archive.home, failed["id"])
    is_kept = part.is_file()

    again = server.ask("POST", f"{place}/import")
    run_waiting(server)
    done = operation(server, again.json()["id"])

    assert (ended, told["state"], told["errorCode"]) == ([OperationState.FAILED], "failed", "no_space")
    assert (failed["state"], is_kept) == ("failed", True)
    assert (done["state"], done["result"]["imported"], done["result"]["again"]) == ("done", 2, 1)
    assert (server.get(place).json()["state"], part.exists()) == ("imported", False)
    for name in ("one", "two", "three"):
        assert server.get("/cdx", params={"url": f"{name}.example/", "output": "json"}).json(), name
