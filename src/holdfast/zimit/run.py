"""One run from inspecting the directory to the end state: phases, attempts, fallback, final build, clean-up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from holdfast import log
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.jobs.endings import FailureCause
from holdfast.storage.disk import write_whole
from holdfast.zimit import logs
from holdfast.zimit.capture import capture
from holdfast.zimit.docker import build_arguments, crawl_arguments, directory_label, inside_path
from holdfast.zimit.errors import CaptureUnavailable, DockerMissing, StateUnwritable, ZimExists
from holdfast.zimit.flags import Backend, Options, ResumePolicy
from holdfast.zimit.outcome import EndState, classify_text
from holdfast.zimit.output_directory import (
    MANAGED_NAME,
    RESUME_NAME,
    CrawlState,
    OutputDirectory,
    as_text,
    read_mapping,
    remove_temp_dirs,
    temp_dirs_in,
)
from holdfast.zimit.passthrough import merged, size_limit
from holdfast.zimit.stage import Stage, StageEnd, Tools
from holdfast.zimit.warc_files import (
    ToolWarcFile,
    consolidate,
    discover_warcs,
    stable_warcs,
    temp_warcs,
    warcs_in,
)


class RunMode(StrEnum):
    FRESH = "Fresh"
    RESUME = "Resume"
    CONSOLIDATE = "New with Consolidation"
    OVERWRITE = "Fresh (Overwrite)"

    @property
    def stage(self) -> str:
        return {RunMode.RESUME: "Resume Crawl", RunMode.CONSOLIDATE: "New Crawl Phase"}.get(self, "Initial Crawl")


def choose_mode(
    *, zim_exists: bool, overwrite: bool, wants_build: bool, has_resume: bool, has_warcs: bool, may_resume: bool = True
) -> RunMode | None:
    """Return how to start, or None if a finished ZIM is in the way.

    In this order: the ZIM (only relevant if one is wanted), the saved queue, earlier WARC files, a fresh start.
    `may_resume` is false if the policy, a poisoned queue or too many temporary directories forbid it.
    """
    # A finished ZIM is in the way only if one is wanted: captures alone are never refused for it.
    if zim_exists and wants_build:
        return RunMode.OVERWRITE if overwrite else None
    if has_resume and may_resume:
        return RunMode.RESUME
    return RunMode.CONSOLIDATE if has_warcs else RunMode.FRESH


_SHAPES = (
    ("collections/crawl-*/crawls/crawl-*.yaml",),
    ("collections/crawl-*/crawls/crawl-*.yml",),
    ("collections/crawl-*/crawls/*.yaml", "crawls/*.yaml"),
    ("collections/crawl-*/crawl-*.yaml",),
)
_EMPTY_BUILD = (b"no entry found to push", b"unprocessable and looks probably mostly empty")


def candidates(temp_dirs: Iterable[Path]) -> Iterator[Path]:
    """Yield saved queues inside temporary directories, found by the pattern of their path, newest first in each."""
    folders = list(temp_dirs)
    seen: set[Path] = set()
    for patterns in _SHAPES:
        found = {path for folder in folders for pattern in patterns for path in folder.glob(pattern)} - seen
        seen |= found
        # The container writes here: a link could lead anywhere on the host.
        plain = [path for path in found if path.is_file() and not path.is_symlink()]
        yield from sorted(plain, key=lambda path: (path.stat().st_mtime_ns, str(path)), reverse=True)


def usable_resume(output_dir: Path, temp_dirs: Iterable[Path]) -> Path | None:
    """Return the saved queue to resume from: the stable copy, else the first readable candidate."""
    queues = chain([output_dir / RESUME_NAME], candidates(temp_dirs))
    return next((path for path in queues if read_mapping(path) is not None), None)


def keep_resume(output_dir: Path, queues: Iterable[Path]) -> Path | None:
    """Copy the first saved queue that can be read to its stable path, with the managed settings added.

    The copy replaces the old one atomically and has the modification time of its original. Return None if no queue
    can be read.
    """
    stable, managed = output_dir / RESUME_NAME, read_mapping(output_dir / MANAGED_NAME)
    for found in queues:
        if (content := read_mapping(found)) is None:
            continue
        wanted = content if managed is None else merged(managed, content)
        if found != stable or wanted != content:
            data = found.read_bytes() if wanted == content else as_text(wanted).encode()
            # The copy keeps the time of its original: candidates are compared by it.
            write_whole(stable, data, mtime=found.stat().st_mtime)
        return stable
    return None


def is_poisoned(output_dir: Path, *, managed: bool) -> bool:
    """Return whether the last run shows that its queue is unusable.

    All three are required: managed settings, a ZIM build that found no input, and statistics that are missing or
    report that every page failed.
    """
    log = logs.newest_log(output_dir)
    said = b"" if log is None else logs.tail(log, logs.POISON_BYTES).lower()
    if not managed or not any(phrase in said for phrase in _EMPTY_BUILD):
        return False
    found = logs.crawl_statistics(output_dir)
    # Every page failed: to go on with this queue would fail the same way.
    return found is None or (found.crawled == 0 and found.pending == 0 and found.failed == found.total >= 1)


class Survey(NamedTuple):
    mode: RunMode | None
    """None if a finished ZIM is in the way."""
    temp_dirs: int
    warcs: int
    statistics: logs.Statistics | None
    reset: str | None
    """Why the files of earlier runs are deleted first; None if they are not."""


def survey(options: Options) -> Survey:
    """Inspect the output directory without changing anything."""
    output_dir = options.output_dir
    temp_dirs, files = temp_dirs_in(output_dir), discover_warcs(output_dir)
    reset, may_resume = _judge(options, temp_dirs)
    mode = choose_mode(
        zim_exists=options.zim_path.exists(),
        overwrite=options.overwrite,
        wants_build=options.wants_build,
        has_resume=usable_resume(output_dir, temp_dirs) is not None,
        has_warcs=bool(files),
        may_resume=may_resume,
    )
    statistics = logs.crawl_statistics(output_dir)
    return Survey(mode, len(temp_dirs), len(files), statistics, reset)


def _judge(options: Options, temp_dirs: list[Path]) -> tuple[str | None, bool]:
    output_dir = options.output_dir
    managed = options.managed_config is not None or (output_dir / MANAGED_NAME).is_file()
    remains = bool(temp_dirs) or (output_dir / RESUME_NAME).exists()
    if options.resume_policy is ResumePolicy.FRESH_ONLY:
        return ("the resume policy is fresh_only" if remains else None), False
    if options.max_temp_dirs is not None and len(temp_dirs) > options.max_temp_dirs:
        return f"{len(temp_dirs)} temporary directories are more than {options.max_temp_dirs}", False
    if is_poisoned(output_dir, managed=managed):
        return ("the saved queue is poisoned" if options.reset_poisoned else None), False
    return None, True


def reset(state: CrawlState, clock: Clock) -> None:
    """Store every WARC file under its stable name, then delete temporary directories, saved queue and state.

    Raise `NoSpace`, `Unavailable` or `StableNameTaken` if a file cannot be stored; nothing is deleted then.
    """
    output_dir = state.output_dir
    # Every WARC file has its stable name before anything is removed.
    folders = temp_dirs_in(output_dir)
    paths, created = consolidate(output_dir, warcs_in(folders), clock)
    remove_temp_dirs(output_dir, folders)
    (output_dir / RESUME_NAME).unlink(missing_ok=True)
    state.forget()
    log.get().info("remains.reset", created=created, reused=len(paths) - created, folders=len(folders))


_ENDS: dict[type[HoldfastError], EndState] = {
    StateUnwritable: EndState.STATE_ERROR,
    DockerMissing: EndState.DOCKER_START,
    CaptureUnavailable: EndState.FAILED,
}


class ToolRun:
    """One run. The directory is checked before each phase, so that nothing is written around missing storage."""

    def __init__(self, tools: Tools, place: OutputDirectory, found: Survey) -> None:
        self._tools, self._place, self._found = tools, place, found
        self._options, self._state = tools.options, tools.state
        # WARC files that an overwriting run leaves out of its ZIM.
        self._earlier: frozenset[tuple[int, int]] = frozenset()

    def execute(self) -> EndState:
        """Run to the end and return how it ended; may raise `ZimExists`, `StoreMissing` and other Holdfast errors."""
        try:
            return self._execute()
        except (StateUnwritable, DockerMissing, CaptureUnavailable) as exc:
            log.get().error("run.failed", reason=str(exc), error=exc.code)
            return _ENDS[type(exc)]

    def _execute(self) -> EndState:
        if self._found.mode is None:
            zim = self._options.zim_path
            raise ZimExists(f"{zim} exists; pass --overwrite to replace it, or --skip-final-build to build none")
        if self._options.backend is Backend.BROWSERTRIX or self._options.wants_build:
            log.get().info("docker.found", version=self._tools.docker.check())
            # A container that a killed tool left running writes into the same directory; `--keep` preserves its files.
            for container in self._tools.docker.containers(directory_label(self._options.output_dir)):
                log.get().warning("container.orphan", container=container)
                self._tools.docker.stop(container)
        if self._only_builds(self._found.mode):
            return self._finish()
        mode = self._begin(self._found.mode)
        ended = self._crawl(mode) if self._options.backend is Backend.BROWSERTRIX else self._capture()
        return self._finish() if ended is EndState.SUCCESS else ended

    def _only_builds(self, mode: RunMode) -> bool:
        """Return whether an earlier run here finished its crawl but could not build the ZIM."""
        awaits, wants = self._state.awaits_build, self._options.wants_build
        if awaits and wants and mode is not RunMode.OVERWRITE and discover_warcs(self._options.output_dir):
            log.get().info("crawl.complete_already", warcs=self._found.warcs)
            return True
        self._state.awaits_build = False
        return False

    def _begin(self, mode: RunMode) -> RunMode:
        output_dir = self._options.output_dir
        if self._options.managed_config is not None:
            write_whole(output_dir / MANAGED_NAME, as_text(self._options.managed_config).encode())
        if mode is RunMode.OVERWRITE:
            # By inode: stable files get new names, and a ZIM must not hold pages of the crawl that it replaces.
            self._earlier = frozenset(file.identity for file in discover_warcs(output_dir))
            (output_dir / RESUME_NAME).unlink(missing_ok=True)
            self._state.forget()
        elif self._found.reset is not None:
            log.get().info("remains.resetting", reason=self._found.reset)
            reset(self._state, self._tools.clock)
        elif mode is not RunMode.RESUME:
            self._state.reset_adaptation()
        self._state.update()
        log.get().info("run.begins", mode=mode.value, workers=self._state.current_workers, warcs=self._found.warcs)
        return mode

    def _crawl(self, mode: RunMode) -> EndState:
        attempt, fresh_failures = 1, 0
        while attempt <= self._options.max_attempts:
            # Before each phase: storage that went away is never written around.
            self._place.check()
            if self._is_full():
                return EndState.SUCCESS
            end, log_path = self._crawl_stage(mode, attempt)
            settled = self._settled(end, log_path)
            if settled is not None:
                return settled
            # A stage that was stopped to adapt it is no failed attempt.
            if end is not None:
                attempt += 1
                fresh_failures += mode is not RunMode.RESUME
                if 0 < self._options.fresh_failures <= fresh_failures and self._options.fallback:
                    return self._capture()
            if attempt <= self._options.max_attempts and self._tools.stop_request.pause(self._options.backoff_s):
                return EndState.STOPPED
            mode = self._next_mode()
        return EndState.MAX_ATTEMPTS

    def _crawl_stage(self, mode: RunMode, attempt: int) -> StageEnd:
        output_dir = self._options.output_dir
        config: Path | None = None
        if mode is RunMode.RESUME:
            config = keep_resume(output_dir, [output_dir / RESUME_NAME, *candidates(self._state.temp_dirs)])
        if config is None and (output_dir / MANAGED_NAME).is_file():
            config = output_dir / MANAGED_NAME
        arguments = crawl_arguments(
            self._options, self._state.current_workers, config, captured_bytes=self._captured_bytes()
        )
        return self._run_stage(Stage(self._tools, f"{mode.stage} - Attempt {attempt}", arguments))

    def _run_stage(self, stage: Stage) -> StageEnd:
        """Run a stage, list its temporary directory in the state, and adopt the queue that it saved."""
        end, log_path = stage.run()
        # Before the log is read: a mount that vanished took it along.
        self._place.check_identity()
        folder = None if end is EndState.DOCKER_START else logs.announced_temp_dir(log_path, self._options.output_dir)
        self._state.update()
        if folder is not None and folder in self._state.temp_dirs:
            keep_resume(self._options.output_dir, candidates([folder]))
        return end, log_path

    def _captured_bytes(self) -> int:
        """Return the total size of this crawl's WARC files; computed only if a size limit needs it."""
        if size_limit(self._options.zimit) is None:
            return 0
        files = discover_warcs(self._options.output_dir)
        return sum(file.size for file in files if file.identity not in self._earlier)

    def _is_full(self) -> bool:
        limit = size_limit(self._options.zimit)
        if limit is None or (captured := self._captured_bytes()) < limit:
            return False
        log.get().info("crawl.size_limit_reached", captured_bytes=captured, limit_bytes=limit)
        return True

    def _settled(self, end: EndState | None, log_path: Path) -> EndState | None:
        """Return the end state after a stage, or None if another attempt makes sense."""
        if end is EndState.SUCCESS:
            return end
        if self._tools.stop_request.stopping:
            return EndState.STOPPED
        if end is not EndState.FAILED:
            return end
        failure, stage = classify_text(logs.failure_text(log_path), self._options.output_dir)
        # Wrong arguments and broken storage fail the same way again: they are not tried a second time.
        if failure is not FailureCause.FAILED:
            log.get().error("crawl.hopeless", reason="the same again would fail the same", log=log_path.name)
            return EndState.FAILED
        last = logs.last_statistics(log_path)
        # The crawl came to its end and only its build failed: another attempt would crawl the whole site again.
        if stage is not None and last is not None:
            log.get().error("crawl.finalization_failed", crawled=last.crawled, total=last.total)
            return EndState.FAILED
        return None

    def _next_mode(self) -> RunMode:
        """Choose the mode after a stage; a queue just found to be poisoned is not resumed again."""
        output_dir = self._options.output_dir
        poisoned = is_poisoned(output_dir, managed=(output_dir / MANAGED_NAME).is_file())
        if poisoned and self._options.reset_poisoned:
            reset(self._state, self._tools.clock)
        may_resume = self._options.resume_policy is not ResumePolicy.FRESH_ONLY and not poisoned
        if may_resume and usable_resume(output_dir, self._state.temp_dirs):
            return RunMode.RESUME
        return RunMode.CONSOLIDATE if discover_warcs(output_dir) else RunMode.FRESH

    def _capture(self) -> EndState:
        backend = self._options.backend
        if backend is Backend.BROWSERTRIX and self._options.fallback is not None:
            backend = self._options.fallback
        log.get().info("capture.begins", backend=backend.value)
        return capture(self._tools, backend)

    def _finish(self) -> EndState:
        """Give the WARC files stable names, build the ZIM if wanted, clean up if requested."""
        self._place.check()
        output_dir = self._options.output_dir
        consolidate(output_dir, temp_warcs(output_dir), self._tools.clock)
        files = stable_warcs(output_dir) if self._options.wants_build else []
        files = [file for file in files if file.identity not in self._earlier]
        # Written before the build begins: one that fails, is stopped or killed must not cost the site a second crawl.
        self._state.update(awaits_build=bool(files))
        if self._tools.stop_request.stopping:
            return EndState.STOPPED
        if self._options.wants_build:
            built = self._build(files)
            if built is not EndState.SUCCESS:
                return built
            self._state.update(awaits_build=False)
        if self._options.cleanup:
            remove_temp_dirs(output_dir, temp_dirs_in(output_dir))
            (output_dir / RESUME_NAME).unlink(missing_ok=True)
            self._state.path.unlink(missing_ok=True)
            log.get().info("remains.cleaned")
        return EndState.SUCCESS

    def _build(self, files: list[ToolWarcFile]) -> EndState:
        if not files:
            return EndState.NO_WARCS
        inside = [name for file in files if (name := inside_path(file.path, self._options.output_dir))]
        # A name with a comma would be read as two files inside the container.
        if len(inside) != len(files):
            return EndState.PATH_CONVERSION
        arguments = build_arguments(self._options, inside)
        # A build reports no crawl statistics: watching it would take its silence for a stall.
        end, _ = self._run_stage(Stage(self._tools, logs.FINAL_BUILD, arguments, watched=False))
        if end is EndState.SUCCESS and not self._options.zim_path.exists():
            log.get().warning("build.zim_not_seen", expected=self._options.zim_path.name)
        return end if end in (EndState.SUCCESS, EndState.STOPPED) else EndState.BUILD_FAILED
