"""The state file: capped, repaired field by field, synced, and never a path outside the job."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.zimit.output_directory import STATE_NAME, load_state


def _write(folder: Path, **content: object) -> None:
    (folder / STATE_NAME).write_text(json.dumps(content))


def test_workers_are_capped_by_what_is_asked_for_now(tmp_path: Path) -> None:
    _write(tmp_path, current_workers=8, initial_workers=8, worker_reductions_done=1)

    state = load_state(tmp_path, 3)

    assert (state.current_workers, state.initial_workers, state.worker_reductions_done) == (3, 3, 1)


@pytest.mark.parametrize("value", ["4", None, [], True, -1, 0, 1.5, 10**9])
def test_a_wrong_value_resets_its_field_alone(tmp_path: Path, value: object) -> None:
    _write(tmp_path, current_workers=value, container_restarts_done=7, vpn_rotations_done="x")

    state = load_state(tmp_path, 4)

    assert (state.current_workers, state.container_restarts_done, state.vpn_rotations_done) == (4, 7, 0)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a":' * 100_000])
def test_load_state_returns_defaults_when_file_is_invalid(tmp_path: Path, text: str) -> None:
    (tmp_path / STATE_NAME).write_text(text)

    assert load_state(tmp_path, 2).current_workers == 2


def test_temp_dirs_are_those_of_the_directory_by_age_without_replaced_ones(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for age, name in enumerate((".tmpb", ".tmpa")):
        (job / name).mkdir()
        os.utime(job / name, (age, age))
    (tmp_path / ".tmpoutside").mkdir()
    (job / "plain").mkdir()
    (job / ".tmplink").symlink_to(tmp_path / ".tmpoutside")
    _write(job, temp_dirs_host_paths=[str(tmp_path / ".tmpoutside"), str(job / "plain"), 7, ""])

    state = load_state(job, 1)

    assert state.temp_dirs == [job / ".tmpb", job / ".tmpa"]
    state.forget()
    (job / ".tmpc").mkdir()
    assert state.temp_dirs == [job / ".tmpc"]


def test_what_is_saved_is_what_is_read(tmp_path: Path) -> None:
    state = load_state(tmp_path, 3)
    (tmp_path / ".tmpx").mkdir()

    state.update(current_workers=2, worker_reductions_done=1)
    state.update(container_restarts_done=1, vpn_rotations_done=1)

    assert json.loads((tmp_path / STATE_NAME).read_text()) == {
        "current_workers": 2, "initial_workers": 3, "temp_dirs_host_paths": [str(tmp_path / ".tmpx")],
        "vpn_rotations_done": 1, "worker_reductions_done": 1, "container_restarts_done": 1,
        "error_counts": {"timeout": 0, "http": 0, "other": 0}, "awaits_build": False,
    }  # fmt: skip
    assert load_state(tmp_path, 3).current_workers == 2
    assert list(tmp_path.glob("*.new")) == []


def test_a_new_phase_has_all_its_workers_and_tries_again(tmp_path: Path) -> None:
    state = load_state(tmp_path, 3)
    state.update(current_workers=2, worker_reductions_done=1, container_restarts_done=1)

    state.reset_adaptation()
    state.update()

    again = load_state(tmp_path, 3)
    assert (again.current_workers, again.worker_reductions_done, again.container_restarts_done) == (3, 0, 0)


def test_nothing_is_written_when_the_directory_is_another(tmp_path: Path) -> None:
    class Gone(Exception):
        pass

    def guard() -> None:
        raise Gone

    state = load_state(tmp_path, 1)
    state.guard = guard

    with pytest.raises(Gone):
        state.update()
    assert list(tmp_path.iterdir()) == []
