"""A promise that no test would notice when it breaks is not made: docs/promises.md, docs/faults.md name the tests."""

from __future__ import annotations

from tests.house import promises
from tests.house.source import ROOT, module_from, modules


def test_every_promise_of_readme_and_architecture_names_the_test_that_would_fail_if_it_were_untrue() -> None:
    readme = promises.section((ROOT / "README.md").read_text(), "What you can rely on")
    faults = promises.section((ROOT / "docs/architecture.md").read_text(), "Promises when things break")
    made = [*promises.bullet_sentences(readme), *(f"{row[0]}: {row[1]}" for row in promises.table_rows(faults))]

    assert len(made) > 20
    wrong = promises.untested(
        made, promises.kept_by((ROOT / "docs/promises.md").read_text()), promises.test_ids(modules("tests"))
    )
    assert wrong == [], "docs/promises.md names for each promise a test that would fail if it were untrue"


def test_a_promise_without_a_test_a_test_that_is_none_and_a_stale_row_are_told() -> None:
    kept = {"One.": ["tests/a.py::test_a"], "Old.": ["tests/a.py::test_gone"]}

    assert promises.untested(["One.", "Two."], kept, {"tests/a.py::test_a"}) == [
        "no test: Two.",
        "promised nowhere: Old.",
        "no such test: tests/a.py::test_gone",
    ]


def test_sentences_of_a_list_are_told_apart_and_bare_links_left_out() -> None:
    text = "- **Polite.** One at a time, and\n  a second between. RFC 9309 in full.\n- **Safe.** Yes. See [x](y).\n"

    assert promises.bullet_sentences(text) == [
        "One at a time, and a second between.",
        "RFC 9309 in full.",
        "Yes.",
    ]


def test_every_fault_and_hostile_input_names_the_test_that_would_fail_or_why_there_is_none() -> None:
    page = (ROOT / "docs/faults.md").read_text()

    assert len(promises.kept_by(page)) > 150
    wrong = promises.unheld(page, promises.test_ids(modules("tests")))
    assert wrong == [], "docs/faults.md names for each fault a test that `make test` runs, or says why there is none"


def test_a_fault_without_test_or_reason_one_told_twice_and_a_false_name_are_told() -> None:
    page = (
        "# Faults\n\n## A\n\n| fault | promise | test |\n|---|---|---|\n| held | x | `tests/a.py::test_a` |\n"
        "| bare | x |  |\n| told | x | not covered: no such part yet |\n| empty | x | not covered: |\n"
        "| stale | x | `tests/a.py::test_gone` |\n| held | y | `tests/a.py::test_a` |\n"
    )

    assert promises.unheld(page, {"tests/a.py::test_a"}) == [
        "told twice: held",
        "neither a test nor a reason: bare",
        "neither a test nor a reason: empty",
        "no such test: tests/a.py::test_gone",
    ]


def test_what_is_only_soaked_keeps_no_promise_whether_marked_alone_or_with_its_file() -> None:
    body = "def test_a(): ...\n\n@pytest.mark.soak\ndef test_b(): ...\n"
    plain = module_from("tests/plain.py", f"pytestmark = pytest.mark.postgres\n{body}")
    soaked = module_from("tests/soaked.py", f"pytestmark = [pytest.mark.soak, pytest.mark.postgres]\n{body}")

    assert promises.test_ids([plain, soaked]) == {"tests/plain.py::test_a"}
