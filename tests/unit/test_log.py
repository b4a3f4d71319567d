"""Log lines: one event a line, in JSON, without secrets and without what could forge a second line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast import log


def _written(code: str) -> list[str]:
    """Return the lines that a program writes which does this."""
    done = subprocess.run(
        [sys.executable, "-c", f"from holdfast import log\n{code}"], capture_output=True, text=True, check=True
    )
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_an_event_is_one_line_of_json_on_standard_error() -> None:
    [line] = _written(
        "log.configure('info')\n"
        "log.get(room='x', part=1).info('crawl.done', pages=3, url='https://me:secret@example.org/a', odd={1})\n"
        "log.get().debug('never.seen')"
    )

    event = json.loads(line)
    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "room": "x", "part": 1, "event": "crawl.done", "level": "info", "pages": 3, "url": "https://example.org/a",
        "odd": "{1}",
    }  # fmt: skip


def test_a_line_for_people_names_the_event_first() -> None:
    [line] = _written("log.configure('WARNING', as_json=False)\nlog.get().warning('disk.low', free=3)")

    assert line.split(" ", 1)[1] == "[warning] disk.low free=3"


def test_a_closed_standard_error_is_nobodys_business() -> None:
    assert _written("import sys\nlog.configure('info')\nsys.stderr.close()\nlog.get().error('lost')") == []


def test_a_line_of_a_library_whose_values_do_not_fit_is_written_as_it_stands() -> None:
    [line] = _written("import logging\nlog.configure('info')\nlogging.getLogger('lib').warning('%s and %s', 'one')")

    assert json.loads(line)["message"] == "%s and %s ('one',)"


def test_secrets_are_redacted_and_controls_escaped() -> None:
    with log.captured() as events:
        log.get().warning("x", set_cookie="a=b", message="one\ntwo\u2028three", long="y" * 9999)

    [event] = events
    assert event["set_cookie"] == "[redacted]"
    assert event["message"] == "one\\x0atwo\\x2028three"
    assert len(event["long"]) == 4096


def test_an_exception_is_told_with_its_trace() -> None:
    with log.captured() as events:
        try:
            raise KeyError("lost")
        except KeyError:
            log.get().exception("x.failed")

    assert events[0]["level"] == "error"
    assert "KeyError: 'lost'" in events[0]["exception"]


def test_below_its_level_nothing_is_said_and_an_unknown_level_is_refused() -> None:
    with log.captured("ERROR") as events:
        log.get().warning("quiet")
        log.get().error("loud")

    assert [event["event"] for event in events] == ["loud"]
    with pytest.raises(ValueError, match="no level"):
        log.configure("shouting")


def test_what_libraries_write_passes_the_same_formatter_and_the_same_redaction() -> None:
    lines = _written(
        "import logging, warnings\n"
        "log.configure('info')\n"
        "logging.getLogger('uvicorn.error').warning('lost %s\\nforged', 'https://me:secret@example.org/a')\n"
        "logging.getLogger('alembic.runtime.migration').info('chatter')\n"
        "warnings.warn('https://me:secret@example.org/b is deprecated', UserWarning, stacklevel=1)\n"
        "log.get().info('crawl.done')"
    )

    first, second, last = (json.loads(line) for line in lines)
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "library": "uvicorn.error",
        "message": "lost https://example.org/a\\x0aforged",
        "event": "library.log",
        "level": "warning",
    }
    assert second["library"] == "py.warnings"
    assert "secret" not in lines[1]
    assert last["event"] == "crawl.done"


def test_an_exception_that_a_library_logs_is_told_with_its_trace() -> None:
    [line] = _written(
        "import logging\n"
        "log.configure('info')\n"
        "try:\n"
        "    raise KeyError('lost')\n"
        "except KeyError:\n"
        "    logging.getLogger('asyncio').exception('never retrieved')"
    )

    event = json.loads(line)
    assert (event["library"], event["message"], event["level"]) == ("asyncio", "never retrieved", "error")
    assert "KeyError: 'lost'" in event["exception"]
