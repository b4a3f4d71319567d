"""The document says of a source's configuration what the code that reads it says."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast.api.schemas.source_config import ExtractConfig, source_config_model
from holdfast.sources.config import BACKENDS, STORAGE, SourceConfig, SourceRefused, ZimitConfig, read_config
from holdfast.sources.extraction import ExtractRules
from holdfast.urls import ScopeKind
from holdfast.zimit.flags import JOB_FLAGS


def _below(model: type[BaseModel], name: str) -> type[BaseModel]:
    """Return the model of a group of fields."""
    inner: Any = model.model_fields[name].annotation
    found: type[BaseModel] = next(one for one in inner.__args__ if one is not type(None))
    return found


def test_every_field_that_is_read_is_in_the_document_and_no_other() -> None:
    whole = source_config_model()
    zimit = _below(whole, "zimit")

    assert set(whole.model_fields) == {one.name for one in fields(SourceConfig)}
    assert set(zimit.model_fields) == {one.name for one in fields(ZimitConfig)}
    assert set(ExtractConfig.model_fields) == {one.name for one in fields(ExtractRules)}
    for group, flags in JOB_FLAGS.items():
        assert set(_below(zimit, group).model_fields) == set(flags)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("scope", [one.value for one in ScopeKind]),
        ("storage", list(STORAGE)),
        ("backend", list(BACKENDS)),
        ("robots", ["obey", "ignore"]),
    ],
)
def test_every_word_that_is_taken_is_in_the_document(name: str, words: list[str]) -> None:
    told = source_config_model().model_json_schema()["properties"][name]["anyOf"][0]["enum"]

    assert sorted(told) == sorted(words)


@pytest.mark.parametrize("name", ["max_pages", "quota_bytes", "max_time_s", "delay_s", "per_ip_rate"])
def test_the_bounds_in_the_document_are_those_that_are_kept_to(name: str) -> None:
    told = source_config_model().model_json_schema()["properties"][name]["anyOf"][0]
    kind = int if told["type"] == "integer" else float
    seeds = {"seeds": ["https://example.org/"]}

    for inside in (told["minimum"], told["maximum"]):
        assert getattr(read_config({**seeds, name: kind(inside)}), name) == inside
    for outside in (told["minimum"] - 1, told["maximum"] * 2):
        with pytest.raises(SourceRefused, match=name):
            read_config({**seeds, name: kind(outside)})
