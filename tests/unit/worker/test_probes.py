"""Looks at paths and commands about them: real processes, and the kernel's list of mounts as text."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.operations.crawl_watchdog import MOUNTS, PathHealth, judge, mount_point, probe
from holdfast.operations.storage_watchdog import run_step

TABLE = r"""22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /mnt rw - tmpfs none rw
31 30 0:26 / /mnt/na\040s rw,nosuid - fuse.sshfs host:/x rw
broken
32 30 0:27 / /mnt/nas rw - nfs4 host:/y rw
"""


@pytest.mark.parametrize(
    ("path", "point"),
    [
        ("/mnt/nas/jobs/1", "/mnt/nas"),
        ("/mnt/nas", "/mnt/nas"),
        ("/mnt/na s/jobs", "/mnt/na s"),
        ("/mnt/nasal", "/mnt"),
        ("/srv/jobs", None),
    ],
)
def test_a_path_belongs_to_the_deepest_mount_above_it_and_the_root_is_none(path: str, point: str | None) -> None:
    assert mount_point(Path(path), TABLE) == (None if point is None else Path(point))


def test_the_kernels_own_list_can_be_read() -> None:
    assert mount_point(Path("/proc/self/status"), MOUNTS.read_text()) == Path("/proc")


@pytest.mark.parametrize(
    ("code", "health"),
    [
        (0, PathHealth.ALIVE),
        (errno.ENOTCONN, PathHealth.DEAD),
        (errno.ESTALE, PathHealth.DEAD),
        (errno.EIO, PathHealth.DEAD),
        (errno.ETIMEDOUT, PathHealth.DEAD),
        (errno.ENOENT, PathHealth.MISSING),
        (errno.EACCES, PathHealth.ALIVE),
        (-9, PathHealth.ALIVE),
    ],
)
def test_only_what_the_storage_itself_says_makes_it_dead(code: int, health: PathHealth) -> None:
    assert judge(code).health is health


def test_paths_are_asked_by_processes_of_their_own(tmp_path: Path) -> None:
    odd = tmp_path / "a b\nc"
    odd.mkdir()
    file = odd / "x"
    file.touch()

    found = probe([odd, file, tmp_path / "no"], SystemClock(), deadline_s=20)

    assert [found[path].health for path in (odd, file, tmp_path / "no")] == ["alive", "alive", "missing"]


def test_a_path_that_does_not_answer_in_time_hangs(tmp_path: Path) -> None:
    # On a busy machine the process may be done before it is looked at for the first time.
    looks = (probe([tmp_path], SystemClock(), deadline_s=0)[tmp_path] for _ in range(50))
    assert any(look.is_dead for look in looks)


@pytest.mark.parametrize(
    ("command", "ok", "said"),
    [
        ("echo letting go of {mount}", True, "ended with 0; letting go of /mnt/a b"),
        ("sh -c 'exit 3' {mount}", False, "ended with 3"),
        ("no-such-program {mount}", False, "there is no program 'no-such-program' on PATH"),
        ("'", False, '"\'" is no command: No closing quotation'),
        ("", False, "there is no program '' on PATH"),
        ("sleep 30", False, "it took longer than 0.2 s"),
        ("sh -c 'echo $HOLDFAST_API_ADMIN_TOKEN'", True, "ended with 0"),
    ],
)
def test_a_command_of_the_settings_runs_without_a_shell_without_secrets_and_in_time(
    command: str, ok: bool, said: str
) -> None:
    outer = {**os.environ, "HOLDFAST_API_ADMIN_TOKEN": "secret"}

    step = run_step("unmount", command, "/mnt/a b", deadline_s=0.2 if "sleep" in command else 20, outer=outer)

    assert (step.ok, step.said) == (ok, said)
