"""Whatever is done to the whole API in whatever order, nothing breaks; what one answer names, the next asks for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from random import SystemRandom
from time import monotonic
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.core.transport import Response

from tests.schema_bed import asked, serving_schema

_SECONDS = float(os.environ.get("HOLDFAST_STATEFUL_SECONDS") or 25)
_ENDLESS = re.compile(r"/(?:events|stream)\b|^/mcp")
"""Streams, which end with their client, and the tool server, which speaks a protocol of its own."""


def test_no_order_of_requests_breaks_the_server(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOLDFAST_STATEFUL_SEED") or SystemRandom().randrange(1 << 32))
    print(f"asked again by: HOLDFAST_STATEFUL_SEED={seed}")  # shown where the test fails
    statuses: dict[int, int] = {}
    with serving_schema(tmp_path / "home") as served:
        endless = [path for path in served.schema.raw_schema["paths"] if _ENDLESS.search(path)]
        schema = served.schema.exclude(path=endless) if endless else served.schema

        class Workflow(schema.as_state_machine()):  # type: ignore[misc]
            """Asks the server in this process."""

            def call(self, case: Any, **_options: Any) -> Response:
                answer = asked(served.client, case, signed=False)
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                assert answer.status_code < 500 or answer.status_code == 507, (case.formatted_path, answer.text)
                return Response.from_any(answer)

            def validate_response(self, *_arguments: Any, **_options: Any) -> None:
                """Leave the form of answers to the suite of single requests."""

        end, number = monotonic() + _SECONDS, 0
        while monotonic() < end:
            # In portions: a run has no limit in time, and each portion begins with other choices.
            Workflow._hypothesis_internal_use_seed = seed + number
            run_state_machine_as_test(
                Workflow,
                settings=settings(
                    max_examples=3,
                    stateful_step_count=12,
                    deadline=None,
                    database=None,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
            number += 1
    print(f"statuses: {dict(sorted(statuses.items()))}")
    # It gets somewhere: most of the API answers, and things are made and found again.
    assert statuses.get(200, 0) + statuses.get(201, 0) + statuses.get(202, 0) > sum(statuses.values()) // 10, statuses
