"""`K=V` words for a job's tool options: types as declared, everything else refused with the key at fault."""

from __future__ import annotations

import pytest

from holdfast.zimit.errors import ToolConfigRefused
from holdfast.zimit.flags import read_patch


def test_values_get_the_declared_types() -> None:
    made = read_patch(
        ["cleanup=yes", "overwrite=False", "initial_workers= 4", "docker_shm_size=2g", "stall_timeout_minutes=none",
         'browsertrix_config={"a": 1}'],
        ["resume_policy=fresh_only", "max_temp_dirs_before_reset=3", "auto_reset_poisoned_state=1"],
    )  # fmt: skip

    assert made["tool_options"] == {
        "cleanup": True, "overwrite": False, "initial_workers": 4, "docker_shm_size": "2g",
        "stall_timeout_minutes": None, "browsertrix_config": {"a": 1},
    }  # fmt: skip
    assert made["execution_policy"] == {
        "resume_policy": "fresh_only", "max_temp_dirs_before_reset": 3, "auto_reset_poisoned_state": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ("initial_workers", "tool_options"), ("=1", "tool_options"), ("nope=1", "tool_options.nope"),
        ("initial_workers=four", "tool_options.initial_workers"), ("cleanup=maybe", "tool_options.cleanup"),
        ("browsertrix_config=[1]", "tool_options.browsertrix_config"), ("cleanup=null", "tool_options.cleanup"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(word: str, field: str) -> None:
    with pytest.raises(ToolConfigRefused) as refused:
        read_patch([word], [])

    assert refused.value.field == field
