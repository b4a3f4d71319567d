"""The watchdog on storage that is really dead: a mount whose other end is gone, seen, freed and mounted anew."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

from tests import needs, patience
from tests.flow.dead_mount import CANNOT


def test_a_mount_whose_other_end_is_gone_is_freed_by_the_servers_own_commands(tmp_path: Path) -> None:
    needs.program("unshare", package="util-linux")
    home = (tmp_path / "home").resolve()
    home.mkdir()
    variables = {
        **os.environ, "HOLDFAST_STORAGE_DEAD_S": "0", "HOLDFAST_STORAGE_UNMOUNT_COMMAND": "umount -l {mount}",
        "HOLDFAST_STORAGE_MOUNT_COMMAND": "true {mount}",
    }  # fmt: skip

    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-m", "tests.flow.dead_mount", str(home)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=variables, timeout=patience.deadline(90), check=False
    )
    if done.returncode == CANNOT or "unshare failed" in done.stderr:
        needs.may_mount(done.stderr.strip())

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "infra_error", "a disk that does not answer has not lost its files"
    first, second = found["looks"]
    [seen], [freed] = first["dead"], second["dead"]
    assert (seen["path"], seen["mount"], seen["errno"]) == (str(home / "warcs"), True, errno.ENOTCONN)
    assert (seen["acted_for"], first["exit_code"]) == ([], 1)
    assert [(step["step"], step["ok"]) for step in freed["steps"]] == [
        ("end job 1", True), ("unmount", True), ("mount", True), ("probe", True),
    ]  # fmt: skip
    assert (freed["healed"], second["exit_code"]) == (True, 0)
    assert (found["state"], found["infra"], found["alive"]) == ("scheduled", 1, True)


def test_commands_that_look_at_a_crawl_come_back_from_storage_that_hangs(tmp_path: Path) -> None:
    needs.program("unshare", package="util-linux")
    home = (tmp_path / "home").resolve()
    home.mkdir()

    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-m", "tests.flow.hung_mount", str(home)]
    variables = {**os.environ, "HOLDFAST_TIMINGS_STORAGE_PROBE_S": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300, check=False)
    if done.returncode == CANNOT or "unshare failed" in done.stderr:
        needs.may_mount(done.stderr.strip())

    assert done.returncode == 0, done.stderr
    status, recovered = json.loads(done.stdout)
    assert [one["state_file_ok"] for one in (*status["crawls"], *recovered["crawls"])] == [False, False]
