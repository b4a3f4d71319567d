"""An execution whose processes a test starts itself, each under a name that the site sees in its log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from holdfast import config
from holdfast.crawl.assignment import Assignment, seeds_of
from holdfast.crawl.recovery import RecoveryReport, recover
from holdfast.jobs import executions
from holdfast.processes.runfile import new_name
from holdfast.sources.plan import CrawlPlan
from holdfast.wiring import Runtime, open_runtime
from tests.flow.crawler import Crawler


class Team:
    """The processes of one execution; the test stands in for the supervisor."""

    def __init__(self, crawler: Crawler, seeds: Sequence[str], *, delay_s: float, size: int = 2) -> None:
        self._crawler, self._size = crawler, size
        self._plan = CrawlPlan(
            seeds=tuple(seeds), contact="tests@example.org", delay_s=delay_s, allow_networks=("127.0.0.0/8",)
        )
        with self._runtime() as runtime:
            wish = executions.ExecutionOptions(crawler.home)
            self._begun = executions.begin(runtime.raw_db, runtime.clock, self._plan, wish, is_working=lambda _: False)
            runtime.frontier.add(self._begun.execution_id, list(seeds_of(self._plan)))
        self._members: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *before: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a process whose user agent is this name; `before` is a program that runs it, such as strace."""
        begun = self._begun
        assignment = Assignment(
            plan=replace(self._plan, user_agent=name).to_json(), execution_id=begun.execution_id,
            source_code=begun.source_code, output_dir=str(begun.output_dir), run_file=new_name(),
            processes=self._size, seconds_left=None, supervisor=os.getpid(),
        )  # fmt: skip
        home = {"HOLDFAST_HOME": str(self._crawler.home.resolve())}
        with (begun.output_dir / "crawl.log").open("ab") as log:
            member = subprocess.Popen(
                [*before, sys.executable, "-m", "holdfast.crawl.process"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, env={**self._crawler.variables, **home, **variables},
            )  # fmt: skip
        assert member.stdin is not None
        member.stdin.write(assignment.to_json().encode())
        member.stdin.close()
        self._members.append(member)
        return member

    def finish(self, *, timeout_s: float = 60.0) -> list[str]:
        """Wait for all processes and return their endings; one that fails fails the test."""
        endings = []
        for member in self._members:
            assert member.stdout is not None
            try:
                code = member.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._end_all()
                raise AssertionError(f"not ended after {timeout_s} s: {self._crawler.log()[-3000:]}") from None
            with member.stdout as pipe:
                said = pipe.read()
            assert code == 0, f"exit {code}: {self._crawler.log()[-3000:]}"
            endings.append(json.loads(said.splitlines()[-1])["ending"])
        with self._runtime() as runtime:
            number = self._begun.execution_id
            executions.end(runtime.raw_db, runtime.clock, executions.ExecutionEnding(number, "completed", "done"))
        return endings

    def _end_all(self) -> None:
        for member in self._members:
            member.kill()
            member.communicate()

    def forget(self, member: subprocess.Popen[bytes]) -> None:
        """Expect nothing more of a member that was killed."""
        assert member.stdout is not None
        member.stdout.close()
        self._members.remove(member)

    def free(self, owner_id: int) -> int:
        """Void the leases of an owner, as whoever takes it for dead does."""
        with self._runtime() as runtime:
            return runtime.frontier.free([owner_id])

    def recover(self) -> RecoveryReport:
        """Clean up after members that died."""
        with self._runtime() as runtime:
            return recover(runtime)

    @contextmanager
    def _runtime(self) -> Iterator[Runtime]:
        with open_runtime(config.load(home=self._crawler.home, database_url=self._crawler.database_url)) as runtime:
            yield runtime
