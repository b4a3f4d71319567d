"""Every route for everybody is looked at from outside for what members alone may see."""

from __future__ import annotations

from holdfast.auth.roles import Permission
from holdfast.cli.catalogue import FOR_STRANGERS
from tests.api_routes import PERMISSIONS
from tests.contract.members_doors import DOORS, NO_DOORS
from tests.house.floors import imported
from tests.house.source import Module, modules

_LOOKING = {
    "api.figures",
    "api.middleware.capabilities",
    "api.middleware.identity",
    "api.upkeep",
    "assistants.server",
    "cli.export",
    "cli.search",
    "exports.package_cache",
    "search.search",
    "withdrawals.visibility",
}
"""Who may say for whom something is read: the two layers that know it, and what is made once for several viewers."""


def test_every_route_for_everybody_is_a_door_or_says_why_it_is_none() -> None:
    open_to_all = {
        row for row, asked in PERMISSIONS.items() if asked is Permission.READ and not row.startswith("HEAD ")
    }

    assert open_to_all - {row for row, _ in DOORS.values()} == NO_DOORS.keys()


def test_few_places_say_for_whom_something_is_read() -> None:
    saying = {
        module.name
        for module in modules("src/holdfast")
        for _, name in imported(module)
        if name == "withdrawals.viewers.seen_by"
    }

    assert saying <= _LOOKING


def _calls(module: Module, function: str) -> bool:
    return f"{function}()" in module.text and f"def {function}()" not in module.text


def test_few_programs_see_everything_and_no_server() -> None:
    package = modules("src/holdfast")
    starting = {module.name for module in package if _calls(module, "see_everything")}
    begun = {module.name for module in package if _calls(module, "begin_program")}
    serving = {
        module.name.removeprefix("cli.")
        for module in package
        for _, name in imported(module)
        if module.room == "cli" and name.startswith(("assistants.server.", "wiring.processes."))
    }

    assert starting == {"cli.preparing", "wiring"}
    assert begun == {"crawl.process", "operations.process", "operations.worker"}
    assert serving == FOR_STRANGERS
