"""Records show each field to its audience, and describe themselves in the OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import pytest

from holdfast.api.record_answers import add_schemas
from holdfast.feeds.records import FeedItemRecord
from holdfast.jobs.records import ExecutionDetail, ExecutionRecord, JobRecord, JobUpserted
from holdfast.records import (
    Audience,
    IfKnown,
    Member,
    Operator,
    Public,
    Spelling,
    encode,
    from_row,
    record,
    repeated_fields,
)

T = TypeVar("T")


@record
class Stone:
    """A stone."""

    name: Public[str]
    found_at: Member[datetime | None]
    """When it was found."""
    finder: Operator[str]
    note: str


@record
class Gem(Stone):
    """A stone with a price."""

    carats: Public[int]

    @property
    def price(self) -> Member[int]:
        """Estimated."""
        return 100 * self.carats


@record
class Heap(Generic[T]):
    """A heap."""

    stones: Public[list[T]]


STONE = Stone(name="flint", found_at=datetime(2026, 5, 1, 12, tzinfo=UTC), finder="ada", note="heavy")


@pytest.mark.parametrize(
    ("audience", "names"),
    [
        (Audience.PUBLIC, ["name"]),
        (Audience.MEMBER, ["name", "foundAt"]),
        (Audience.OPERATOR, ["name", "foundAt", "finder"]),
    ],
)
def test_each_audience_sees_its_fields_and_nobody_a_field_without_one(audience: Audience, names: list[str]) -> None:
    assert list(encode(STONE, audience)) == names
    assert list(encode(Heap(stones=[STONE]), audience)["stones"][0]) == names


def test_moments_are_written_in_utc_and_names_as_asked() -> None:
    assert encode(STONE, spelling=Spelling.SNAKE)["found_at"] == "2026-05-01T12:00:00Z"


@record
class Mine:
    """A mine."""

    depth: Public[IfKnown[int]] = None
    owner: Public[str | None] = None


def test_field_is_left_out_while_its_value_is_unknown() -> None:
    assert encode(Mine()) == {"owner": None}
    assert encode(Mine(depth=7)) == {"depth": 7, "owner": None}
    components: dict[str, Any] = {}
    add_schemas(Mine, Spelling.CAMEL, components)
    assert components["Mine"]["required"] == ["owner"]


def test_what_is_no_record_has_no_place_in_json() -> None:
    with pytest.raises(TypeError, match="object has no place in JSON"):
        encode({"it": object()})


def test_a_record_takes_the_rest_from_the_row() -> None:
    class Row:
        name, found_at, finder, note = "slate", None, "bob", ""

    assert from_row(Stone, Row(), name="shale") == Stone(name="shale", found_at=None, finder="bob", note="")


@pytest.mark.parametrize("cls", [JobRecord, JobUpserted, ExecutionRecord, ExecutionDetail])
def test_every_repeated_name_is_in_the_schema(cls: type) -> None:
    components: dict[str, Any] = {}
    add_schemas(cls, Spelling.SNAKE, components)
    properties = components[cls.__name__]["properties"]

    assert len(repeated_fields(cls)) >= 6
    for old, name in repeated_fields(cls).items():
        assert properties[old] == properties[name] | {"description": f"The same as `{name}`."}
    assert {*repeated_fields(cls)} <= {*components[cls.__name__]["required"]}


def test_schema_has_the_shown_fields_with_their_descriptions() -> None:
    components: dict[str, Any] = {}

    reference = add_schemas(Heap[Stone], Spelling.CAMEL, components)

    assert reference == {"$ref": "#/components/schemas/Heap_Stone"}
    assert components["Heap_Stone"]["properties"]["stones"]["items"] == {"$ref": "#/components/schemas/Stone"}
    assert components["Stone"]["required"] == ["name"]
    assert components["Stone"]["properties"]["foundAt"]["description"] == "When it was found."


def test_property_with_an_audience_is_shown_like_a_field() -> None:
    gem = Gem(name="opal", found_at=None, finder="ada", note="", carats=2)
    components: dict[str, Any] = {}
    add_schemas(Gem, Spelling.CAMEL, components)

    assert encode(gem, Audience.PUBLIC) == {"name": "opal", "carats": 2}
    assert encode(gem, Audience.MEMBER)["price"] == 200
    described = {name: field.get("description") for name, field in components["Gem"]["properties"].items()}
    assert (described["price"], described["foundAt"]) == ("Estimated.", "When it was found.")


def test_command_json_keeps_the_documented_names() -> None:
    item = FeedItemRecord(
        url="https://a.example/", told_at=None, found_at=datetime(2026, 5, 1, tzinfo=UTC), execution_id=3
    )

    assert encode(item, spelling=Spelling.COMMAND)["execution"] == 3
    assert encode(item)["executionId"] == 3
