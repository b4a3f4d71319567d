"""The house stands: floors, budgets, names, forbidden calls, clean files. Each message says what to do."""

from __future__ import annotations

import ast

import pytest

from tests.house import budgets, calls, files, floors, names, paths, tables
from tests.house.errors import error_tree
from tests.house.source import ROOT, Module, modules, tracked_files


@pytest.fixture(scope="module")
def package() -> tuple[Module, ...]:
    """Every module of the package."""
    return modules("src/holdfast")


@pytest.fixture(scope="module")
def everything(package: tuple[Module, ...]) -> tuple[Module, ...]:
    """Every Python file that we wrote."""
    return package + modules("tests") + modules("bench")


def _clean(complaints: list[str]) -> None:
    assert not complaints, "\n" + "\n".join(complaints)


def test_imports_go_down_or_to_the_left(package: tuple[Module, ...]) -> None:
    _clean(floors.floor_complaints(package))


def test_paths_of_a_crawl_cross_few_packages(package: tuple[Module, ...]) -> None:
    assert [paths.crossed(path, package) - path.packages for path in (paths.LEASE, paths.ATTEMPT)] == [set(), set()]


def test_crawl_imports_no_feeds(package: tuple[Module, ...]) -> None:
    _clean([
        f"{module.path}:{line} imports {name}: feeds read what the crawl settled"
        for module in package if module.room == "crawl"
        for line, name in floors.imported(module) if name.partition(".")[0] == "feeds"
    ])  # fmt: skip


def test_no_modules_import_each_other_in_a_circle(package: tuple[Module, ...]) -> None:
    _clean([f"a circle of imports: {circle}" for circle in floors.cycles(package)])


def test_files_stay_within_their_budget(everything: tuple[Module, ...]) -> None:
    _clean(budgets.long_files(everything))


def test_functions_stay_within_their_budget(everything: tuple[Module, ...]) -> None:
    _clean(budgets.long_functions(everything))


def test_arguments_stay_within_their_budget(package: tuple[Module, ...]) -> None:
    _clean(budgets.many_parameters(package))


def test_no_import_hides_inside_a_function(everything: tuple[Module, ...]) -> None:
    _clean(budgets.hidden_imports(everything))


def test_every_module_and_public_name_is_documented(package: tuple[Module, ...]) -> None:
    _clean(budgets.undocumented(package))


def test_names_say_what_things_are(everything: tuple[Module, ...]) -> None:
    _clean(budgets.forbidden_names(everything))


def test_no_two_public_classes_share_a_name(package: tuple[Module, ...]) -> None:
    _clean(names.shared_class_names(package))


def test_no_package_holds_a_single_file(package: tuple[Module, ...]) -> None:
    _clean(names.lonely_packages(package))


def test_warc_files_are_opened_through_storage(package: tuple[Module, ...]) -> None:
    _clean(calls.joined_captures(package))


def test_the_formatter_is_never_switched_off(package: tuple[Module, ...]) -> None:
    _clean(names.formatter_off(package))


def test_comments_name_the_actor(package: tuple[Module, ...]) -> None:
    _clean(names.faceless_actors(package))


def test_requirements_of_documents_that_are_not_here_stand_in_one_place() -> None:
    read = ((path, _text(path)) for path in tracked_files())

    _clean(names.requirement_numbers((path, text) for path, text in read if text is not None))


def test_no_comment_draws_a_banner(everything: tuple[Module, ...]) -> None:
    _clean(budgets.banners(everything))


def test_nothing_forbidden_is_called_or_imported(package: tuple[Module, ...]) -> None:
    _clean(calls.forbidden_calls(package))


def test_no_process_of_ours_imports_from_the_working_directory(package: tuple[Module, ...]) -> None:
    _clean(list(calls.careless_interpreters(package)))


def test_time_comes_from_the_clock(package: tuple[Module, ...]) -> None:
    _clean(calls.clock_readers(package))


def test_sql_stands_only_where_it_may(package: tuple[Module, ...]) -> None:
    _clean(calls.stray_sql(package))


def test_each_table_belongs_to_one_database_stack(package: tuple[Module, ...]) -> None:
    _clean(tables.foreign_tables(package))
    _clean(tables.modelled_writes(package))
    decision = (ROOT / "docs" / "decisions" / "0027-one-stack-per-table.md").read_text()
    known = set(tables.table_names(package).values())
    assert known >= tables.RAW_TABLES | tables.SHARED_TABLES
    _clean([f"docs/decisions/0027: say which stack {name} belongs to" for name in known if f"`{name}`" not in decision])


def test_no_reader_compares_withdrawals_by_itself(package: tuple[Module, ...]) -> None:
    allowed = {"db.models", "db.models.archive", "withdrawals.visibility", "withdrawals.hiding"}
    _clean([
        f"{module.path}: leave out what is withdrawn with holdfast.withdrawals.visibility, as every reader does"
        for module in package
        if module.name not in allowed and ".migrations." not in module.name
        and any(isinstance(node, ast.Name | ast.alias) and (node.id if isinstance(node, ast.Name) else node.name)
                == "Withdrawal" for node in module.nodes)
    ])  # fmt: skip


def test_every_error_has_a_code_of_its_own(package: tuple[Module, ...]) -> None:
    tree = error_tree(package)
    owners: dict[str, list[str]] = {}
    for error in tree:
        owners.setdefault(error.code or "", []).append(error.name)

    _clean([f"{error.path}: {error.name} has no code of its own: give it one" for error in tree if error.code is None])
    _clean([f"the code {code} belongs to {names}: one each" for code, names in owners.items() if len(names) > 1])


def test_committed_files_say_nothing_about_this_machine() -> None:
    read = ((path, _text(path)) for path in tracked_files())

    _clean(files.forbidden_text((path, text) for path, text in read if text is not None))


def _text(path: str) -> str | None:
    """Return what a file says, None for a binary one and for data that others wrote."""
    if path.endswith(".dat"):
        return None
    data = (ROOT / path).read_bytes()
    return None if b"\0" in data[:8192] else data.decode("utf-8", "replace")
