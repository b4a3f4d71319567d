"""`storage-watchdog`: probes paths that running jobs write to, and recovers dead ones.

The jobs on a dead path end as infrastructure failures, tools on it are requested to end, and commands from
the server's settings, if any, unmount and mount it. Only after several failed probes, at a limited rate, and
only for runs of this machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.config import StorageSettings
from holdfast.db.models import Owner, Recovery
from holdfast.jobs.administration import recovering
from holdfast.jobs.administration.maintenance import DirectoryRun, running, take_for_storage, waiting_for_storage
from holdfast.jobs.administration.recovering import DAY, HOUR, Rate, Refusal, recoveries, refused, streak
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.store import locked_job
from holdfast.operations.crawl_watchdog import MOUNTS, Ask, PathHealth, Probe, is_deploying, mount_point, probe
from holdfast.processes.child_process import ChildProcess
from holdfast.records import Operator, encode, record
from holdfast.wiring.jobs import Jobs
from holdfast.worker.tool_process import hurry_tools
from holdfast.zimit.docker import docker_environment
from holdfast.zimit.output_directory import SENTINEL

_COMMAND_S = 60.0
"""Timeout of the commands to mount and unmount."""

MOUNT = "{mount}"
_SAID_BYTES = 2000


@record
class CommandStep:
    """A step of a recovery, and its result."""

    step: Operator[str]
    ok: Operator[bool]
    said: Operator[str]


def run_step(
    name: str, command: str, mount: str, *, deadline_s: float, outer: Mapping[str, str] = os.environ
) -> CommandStep:
    """Run a command with `{mount}` replaced and return the result; a program missing from PATH is an error."""
    try:
        words = [word.replace(MOUNT, mount) for word in shlex.split(command)]
    except ValueError as exc:
        return CommandStep(step=name, ok=False, said=f"{command[:100]!r} is no command: {exc}")
    # Commands come only from the server's settings, as argument lists: there is no shell, and no request or row can
    # name one.
    program = shutil.which(words[0]) if words else None
    if program is None:
        return CommandStep(step=name, ok=False, said=f"there is no program {(words or [''])[0][:100]!r} on PATH")
    with tempfile.TemporaryFile() as said:
        process = ChildProcess(
            [program, *words[1:]],
            # Remove our secrets: the command needs no database address.
            docker_environment(outer),
            stdout=said,
            stderr=subprocess.STDOUT,
            # Do not run it in our start directory, which may be on the mount to be unmounted.
            cwd="/",
        )
        code = process.finish(deadline_s)
        said.seek(0)
        text = said.read(_SAID_BYTES).decode("utf-8", "replace").strip()
    if code is None:
        return CommandStep(step=name, ok=False, said=f"it took longer than {deadline_s:g} s; {text}".rstrip("; "))
    return CommandStep(step=name, ok=code == 0, said=f"ended with {code}; {text}".rstrip("; "))


# Checks in a row before anything is done; how often all paths together may be freed, and how often for one job.
DEAD_CHECKS = 2
_RATE = Rate(900.0, ((HOUR, 2), (DAY, 6)))
_JOB_RATE = Rate(0.0, ((DAY, 3),))
SEEN_DEAD, SEEN_ALIVE, FREED = "seen_dead", "seen_alive", "path_freed"
"""Actions recorded in `recoveries` about a job's path."""
_NOTED = Recovery.action.in_((SEEN_DEAD, SEEN_ALIVE, FREED))


def decide_storage(
    affected: Sequence[int], notes: Sequence[Recovery], limits: StorageSettings, *, now: datetime
) -> tuple[tuple[int, ...], str]:
    """Return which of the jobs that write to a dead path need help now, and the reason.

    `notes` hold a day of all jobs' notes, oldest first: an action on one path counts for all.
    """
    streaks = [seen_dead(notes, job_id) for job_id in affected]
    # Count the current check, too.
    looks = 1 + max(map(len, streaks), default=0)
    if looks < DEAD_CHECKS:
        return (), f"seen dead {looks} of {DEAD_CHECKS} times"
    dead_s = (now - min((one[0].at for one in streaks if one), default=now)).total_seconds()
    # Two failed checks within a second are one outage: a mount may be back a moment later.
    if dead_s < limits.dead_s:
        return (), f"dead for {dead_s:.0f} of {limits.dead_s:g} s"
    freed = [note for note in notes if note.action == FREED]
    # One action has a note for each of its jobs.
    if (refusal := refused(list({note.at for note in freed}), _RATE, now=now)) is not None:
        return (), f"something was done {'a short while ago' if refusal is Refusal.PAUSE else 'too often'}"
    # Some of the jobs that share a path may have reached today's limit: still free the others.
    helped = {job_id: [note.at for note in freed if note.job_id == job_id] for job_id in affected}
    free = tuple(job_id for job_id in affected if refused(helped[job_id], _JOB_RATE, now=now) is None)
    return free, "dead" if free else "its jobs were helped too often today"


def seen_dead(notes: Sequence[Recovery], job_id: int) -> list[Recovery]:
    """Return a job's last consecutive notes that its path is dead, oldest first."""
    return streak([note for note in notes if note.job_id == job_id], SEEN_DEAD)


@record
class PathCase:
    """One dead path: a mount point, or a directory outside any mount."""

    path: Operator[Path]
    mount: Operator[bool]
    health: Operator[PathHealth]
    errno: Operator[int]
    jobs: Operator[tuple[int, ...]]
    runs: tuple[DirectoryRun, ...]
    acted_for: Operator[tuple[int, ...]]
    """The jobs whose runs were ended."""
    reason: Operator[str]
    healed: Operator[bool] = False
    steps: Operator[tuple[CommandStep, ...]] = ()

    def describe(self) -> str:
        return f"{self.path} is {Probe(self.health, self.errno).describe()}"


@record
class StorageReport:
    """Result of one check of the paths."""

    deploying: Operator[bool] = False
    looked_at: Operator[tuple[Path, ...]] = ()
    dead: Operator[tuple[PathCase, ...]] = ()

    @property
    def is_well(self) -> bool:
        return all(case.healed for case in self.dead)


class StorageWatchdog:
    """Checks paths; `ask` replaces its probes, and `table` how it reads the kernel's table of mounts."""

    def __init__(self, jobs: Jobs, *, ask: Ask | None = None, table: Callable[[], str] = MOUNTS.read_text) -> None:
        self.jobs, self.ask, self.table = jobs, ask, table
        self._limits = jobs.settings.storage

    def look(self, *, apply: bool) -> StorageReport:
        """Check once; without `apply` nothing is recorded, so that nothing is ever confirmed."""
        jobs, now = self.jobs, self.jobs.clock.now()
        if is_deploying(jobs.settings, jobs.clock):
            return StorageReport(deploying=True)
        with jobs.database.read() as session:
            # Skip paths that no job needs; a path that is dead here may work on another machine.
            runs = [run for run in (*running(session), *waiting_for_storage(session)) if _is_here(session, run)]
            notes = recoveries(session, _NOTED, since=now - DAY)
        root = jobs.settings.zimit.store_root
        paths = [_folder(run) for run in runs]
        health = self._ask([*paths, *([root / SENTINEL] if root else [])])
        dead = [run for run in runs if self._health(run, health).is_dead]
        cases = [self._case(path, group, health, notes) for path, group in self._grouped(dead).items()]
        # Record checks only with --apply: a dry run confirms nothing.
        if apply:
            again = [run for run in runs if run not in dead and seen_dead(notes, run.job.id)]
            if again:
                with jobs.database.write() as session:
                    recovering.note(session, jobs.clock, again, SEEN_ALIVE, "it answers again")
            cases = [self._act(case) for case in cases]
        return StorageReport(looked_at=tuple(dict.fromkeys(paths)), dead=tuple(cases))

    def _ask(self, paths: Iterable[Path]) -> Mapping[Path, Probe]:
        if self.ask is not None:
            return self.ask(paths)
        return probe(paths, self.jobs.clock, deadline_s=self.jobs.settings.timings.storage_probe_s)

    def _health(self, run: DirectoryRun, health: Mapping[Path, Probe]) -> Probe:
        """Return the health of a run's directory: dead below an unmounted store root, even if it responds."""
        root, folder = self.jobs.settings.zimit.store_root, _folder(run)
        if root is not None and folder.is_relative_to(root):
            mark = health[root / SENTINEL]
            # A store without its mark is not mounted: the empty directory below the mount point would respond normally.
            if mark.health is not PathHealth.ALIVE:
                return Probe(PathHealth.DEAD if mark.health is PathHealth.MISSING else mark.health, mark.errno)
        return health[folder]

    def _grouped(self, dead: Sequence[DirectoryRun]) -> dict[Path, list[DirectoryRun]]:
        table, root = self.table(), self.jobs.settings.zimit.store_root
        groups: dict[Path, list[DirectoryRun]] = {}
        for run in dead:
            folder = _folder(run)
            # Read the kernel's list: accessing the path itself could hang.
            above = root if root is not None and folder.is_relative_to(root) else mount_point(folder, table)
            groups.setdefault(above or folder, []).append(run)
        return groups

    def _case(
        self, path: Path, runs: list[DirectoryRun], health: Mapping[Path, Probe], notes: Sequence[Recovery]
    ) -> PathCase:
        jobs, found = tuple(run.job.id for run in runs), self._health(runs[0], health)
        acted_for, reason = decide_storage(jobs, notes, self._limits, now=self.jobs.clock.now())
        return PathCase(
            path=path,
            mount=path == self.jobs.settings.zimit.store_root or mount_point(path, self.table()) == path,
            health=found.health,
            errno=found.errno,
            jobs=jobs,
            runs=tuple(runs),
            acted_for=acted_for,
            reason=reason,
        )

    def _act(self, case: PathCase) -> PathCase:
        """Record that a path is dead, or recover it; the record comes first, so that it counts in any case."""
        now = self.jobs.clock.now()
        with self.jobs.database.write() as session:
            # Decide again with the jobs locked, so that only one of two concurrent watchdogs acts.
            ids = [run.job.id for run in case.runs if locked_job(session, run.job.id) is not None]
            acted_for, reason = decide_storage(ids, recoveries(session, _NOTED, since=now - DAY), self._limits, now=now)
            case = replace(case, acted_for=acted_for, reason=reason)
            wanted = [run for run in case.runs if run.job.id in acted_for]
            if not wanted:
                recovering.note(session, self.jobs.clock, case.runs, SEEN_DEAD, case.describe())
                return case
            # Record it before acting: a watchdog that is killed in between must not repeat it at once.
            recovering.note(session, self.jobs.clock, wanted, FREED, case.describe())
        # End the runs in the rows first: their holders' next write is then rejected, whenever they wake.
        steps = [*self._take(case, wanted), *self._remount(case)]
        healed = not self._ask([case.path])[case.path].is_dead and all(step.ok for step in steps)
        steps.append(CommandStep(step="probe", ok=healed, said="it answers" if healed else "it does not answer"))
        with self.jobs.database.write() as session:
            was = Probe(case.health, case.errno).describe()
            detail = {"was": was, "jobs": list(case.acted_for), "steps": encode(steps)}
            subject = f"path {case.path}"
            audit.record(session, self.jobs.clock, action="storage.path_freed", subject=subject, detail=detail)
        return replace(case, steps=tuple(steps), healed=healed)

    def _take(self, case: PathCase, wanted: Sequence[DirectoryRun]) -> list[CommandStep]:
        """End the runs on a path in the database, and request the tools that block it to end."""
        settler, steps = RunSettler(self.jobs.settings, self.jobs.placement), []
        for run in wanted:
            with self.jobs.database.write() as session:
                taken = take_for_storage(session, self.jobs.clock, settler, run, error=case.describe())
            # Include a process left behind by a run that has already failed.
            asked = hurry_tools(_folder(run))
            if taken or asked:
                outcome = f"{'infra_error' if taken else 'it had ended'}; {asked} tools were asked to end"
                steps.append(CommandStep(step=f"end job {run.job.id}", ok=True, said=outcome))
        return steps

    def _remount(self, case: PathCase) -> list[CommandStep]:
        limits, mount = self._limits, str(case.path)
        if not case.mount:
            return [CommandStep(step="mount", ok=False, said="it is no mount of its own: mend the disk below it")]
        steps: list[CommandStep] = []
        for name, command in (("unmount", limits.unmount_command), ("mount", limits.mount_command)):
            if name == "unmount" and mount_point(case.path, self.table()) != case.path:
                steps.append(CommandStep(step=name, ok=True, said="it is not mounted"))
            elif command is None:
                said = f"HOLDFAST_STORAGE_{name.upper()}_COMMAND is not set: nothing was run"
                steps.append(CommandStep(step=name, ok=False, said=said))
            else:
                steps.append(run_step(name, command, mount, deadline_s=_COMMAND_S))
            if not steps[-1].ok:
                break
        return steps


def _folder(run: DirectoryRun) -> Path:
    return Path(os.path.normpath(run.execution.output_dir))


def _is_here(session: Session, run: DirectoryRun) -> bool:
    """Return whether the holder of a run is on this machine; a path dead here may be fine on another one."""
    number = run.job.lock_owner_id
    owner = None if number is None else session.get(Owner, number)
    # A run that waits for its storage has no holder: any machine may handle it.
    return run.execution.state != "running" or owner is None or owner.host == socket.gethostname()
