"""One run from the look at the directory to the end state: phases, attempts, fallback, final build, clearing up."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from holdfast import log
from holdfast.archive_tool.browsertrix import MANAGED_NAME
from holdfast.archive_tool.capture import capture
from holdfast.archive_tool.consolidation import consolidate
from holdfast.archive_tool.discovery import WarcFile, all_temp_dirs, discover_warcs, warcs_in
from holdfast.archive_tool.docker import (
    DockerMissing,
    build_arguments,
    crawl_arguments,
    directory_label,
    inside_path,
    prepare_launch,
)
from holdfast.archive_tool.files import Place
from holdfast.archive_tool.logs import (
    FAILURE_BYTES,
    FINAL_BUILD,
    announced_temp_dir,
    last_statistics,
    loud_text,
    tail,
)
from holdfast.archive_tool.manifest import WARCS
from holdfast.archive_tool.modes import Mode
from holdfast.archive_tool.options import Backend, ResumePolicy
from holdfast.archive_tool.outcome import is_config_text, is_infra_text
from holdfast.archive_tool.refusals import CaptureUnavailable, StateUnwritable, ZimExists
from holdfast.archive_tool.resume import (
    RESUME_NAME,
    is_poisoned,
    keep_resume,
    refresh_resume,
    usable_resume,
    write_managed,
)
from holdfast.archive_tool.stage import End, Stage, StageEnd, Tools, stage_name
from holdfast.archive_tool.survey import Survey, remove_temp_dirs, reset
from holdfast.archive_tool.zimit_flags import size_limit


class EndState(StrEnum):
    """How a run can end. Only the first is exit code 0."""

    SUCCESS = "success"
    FAILED = "failed"
    MAX_ATTEMPTS = "failed_max_attempts"
    NO_WARCS = "failed_no_warcs"
    PATH_CONVERSION = "failed_warc_path_conversion"
    STATE_ERROR = "failed_state_error"
    DOCKER_START = "docker_start_failed"
    STOPPED = "stopped"
    BUILD_FAILED = "warc_complete_finalization_failed"

    @property
    def exit_code(self) -> int:
        """0 for success, 1 for all the rest."""
        return 0 if self is EndState.SUCCESS else 1


class Run:
    """One run. The place is checked before each phase: storage that went away is never written around."""

    def __init__(self, tools: Tools, place: Place, found: Survey) -> None:
        self._tools, self._place, self._found = tools, place, found
        self._options, self._state = tools.options, tools.state
        self._earlier: frozenset[tuple[int, int]] = frozenset()
        """WARC files that an overwriting run leaves out of its ZIM."""

    def execute(self) -> EndState:
        """Run to the end and return how it ended; ZimExists, StoreMissing and other errors of ours may be raised."""
        try:
            return self._execute()
        except StateUnwritable as exc:
            log.get().error("state.failed", reason=str(exc))
            return EndState.STATE_ERROR

    def _execute(self) -> EndState:
        if self._found.mode is None:
            raise ZimExists(self._options.zim_path)
        if self._options.backend is Backend.BROWSERTRIX or self._options.wants_build:
            try:
                log.get().info("docker.found", version=self._tools.docker.check())
            except DockerMissing as exc:
                log.get().error("docker.missing", reason=str(exc))
                return EndState.DOCKER_START
            self._stop_orphans()
        if self._only_builds(self._found.mode):
            return self._finish()
        mode = self._begin(self._found.mode)
        ended = self._crawl(mode) if self._options.backend is Backend.BROWSERTRIX else self._capture()
        return self._finish() if ended is EndState.SUCCESS else ended

    def _only_builds(self, mode: Mode) -> bool:
        """Return whether an earlier run here came to the end of its crawl and was only kept from building the ZIM."""
        awaits, wants = self._state.awaits_build, self._options.wants_build
        if awaits and wants and mode is not Mode.OVERWRITE and discover_warcs(self._options.output_dir).files:
            log.get().info("crawl.complete_already", warcs=self._found.warcs)
            return True
        self._state.note_crawl(awaits_build=False)
        return False

    def _stop_orphans(self) -> None:
        """Stop containers that a killed archive-tool left running in this directory; `--keep` keeps their files."""
        for container in self._tools.docker.containers(directory_label(self._options.output_dir)):
            log.get().warning("container.orphan", container=container)
            self._tools.docker.stop(container)

    def _begin(self, mode: Mode) -> Mode:
        """Make the state what the mode asks for."""
        output_dir = self._options.output_dir
        if self._options.managed_config is not None:
            write_managed(output_dir, self._options.managed_config)
        if mode is Mode.OVERWRITE:
            self._earlier = frozenset(file.identity for file in discover_warcs(output_dir).files)
            (output_dir / RESUME_NAME).unlink(missing_ok=True)
            self._state.forget()
        elif self._found.reset is not None:
            log.get().info("remains.resetting", reason=self._found.reset)
            reset(self._state, self._tools.clock)
        elif mode is not Mode.RESUME:
            self._state.reset_adaptation()
        if mode is not Mode.OVERWRITE:
            for folder in all_temp_dirs(output_dir):
                self._state.add_temp_dir(folder)
        self._state.save()
        log.get().info("run.begins", mode=mode.value, workers=self._state.current_workers, warcs=self._found.warcs)
        return mode

    def _crawl(self, mode: Mode) -> EndState:
        """Run crawl stages until one ends well, nothing more may be tried, or a stop is asked for."""
        attempt, fresh_failures = 1, 0
        while attempt <= self._options.max_attempts:
            self._place.check()
            if self._is_full():
                return EndState.SUCCESS
            ended = self._crawl_stage(mode, attempt)
            settled = self._settled(ended)
            if settled is not None:
                return settled
            if ended.end is not End.ADAPTED:
                attempt += 1
                fresh_failures += mode is not Mode.RESUME
                if 0 < self._options.recovery.fresh_failures <= fresh_failures and self._options.recovery.fallback:
                    return self._capture()
            if attempt <= self._options.max_attempts and self._tools.bell.pause(self._options.watch.backoff_s):
                return EndState.STOPPED
            mode = self._next_mode()
        return EndState.MAX_ATTEMPTS

    def _crawl_stage(self, mode: Mode, attempt: int) -> StageEnd:
        output_dir = self._options.output_dir
        config: Path | None = None
        if mode is Mode.RESUME:
            found = usable_resume(output_dir, self._state.temp_dirs)
            config = None if found is None else keep_resume(output_dir, found)
        if config is None and (output_dir / MANAGED_NAME).is_file():
            config = output_dir / MANAGED_NAME
        arguments = crawl_arguments(
            self._options, self._state.current_workers, config, captured_bytes=self._captured_bytes()
        )
        name = stage_name(mode.stage, attempt)
        log.get().info("stage.begins", stage=name, workers=self._state.current_workers)
        ended = Stage(self._tools, name, prepare_launch(self._options, arguments)).run()
        log.get().info("stage.ended", stage=name, end=ended.end.value, exit_code=ended.exit_code)
        self._place.check_identity()
        if ended.end is not End.NOT_STARTED:
            folder = announced_temp_dir(ended.log.combined, output_dir)
            if folder is not None and self._state.add_temp_dir(folder):
                refresh_resume(output_dir, folder)
        return ended

    def _captured_bytes(self) -> int:
        """Return what this crawl's WARC files weigh; only counted where it matters."""
        if size_limit(self._options.zimit) is None:
            return 0
        files = discover_warcs(self._options.output_dir).files
        return sum(file.size for file in files if file.identity not in self._earlier)

    def _is_full(self) -> bool:
        """Return whether earlier stages have captured all that this crawl may."""
        limit = size_limit(self._options.zimit)
        if limit is None or (captured := self._captured_bytes()) < limit:
            return False
        log.get().info("crawl.size_limit_reached", captured_bytes=captured, limit_bytes=limit)
        return True

    def _settled(self, ended: StageEnd) -> EndState | None:
        """Return the end state that a stage leads to, or None if another attempt makes sense."""
        if ended.end is End.SUCCESS:
            return EndState.SUCCESS
        if ended.end is End.STOPPED or self._tools.bell.stopping:
            return EndState.STOPPED
        if ended.end is End.NOT_STARTED:
            return EndState.DOCKER_START
        if ended.end is End.ADAPTED:
            return None
        said = loud_text(tail(ended.log.combined, FAILURE_BYTES))
        if is_config_text(said) or is_infra_text(said):
            log.get().error("crawl.hopeless", reason="the same again would fail the same", log=ended.log.combined.name)
            return EndState.FAILED
        last = last_statistics(ended.log.combined)
        if last is not None and last.is_complete and discover_warcs(self._options.output_dir).files:
            log.get().error("crawl.finalization_failed", crawled=last.crawled, total=last.total)
            return EndState.FAILED
        return None

    def _next_mode(self) -> Mode:
        """Decide anew after a stage; a queue that has just shown to lead nowhere is not taken up once more."""
        output_dir = self._options.output_dir
        poisoned = is_poisoned(output_dir, managed=(output_dir / MANAGED_NAME).is_file())
        if poisoned and self._options.recovery.reset_poisoned:
            reset(self._state, self._tools.clock)
        may_resume = self._options.recovery.policy is not ResumePolicy.FRESH_ONLY and not poisoned
        if may_resume and usable_resume(output_dir, self._state.temp_dirs):
            return Mode.RESUME
        return Mode.CONSOLIDATE if discover_warcs(output_dir).files else Mode.FRESH

    def _capture(self) -> EndState:
        """Capture with the other backend: the one asked for, or the fallback after too many failures."""
        backend = self._options.backend
        if backend is Backend.BROWSERTRIX and self._options.recovery.fallback is not None:
            backend = self._options.recovery.fallback
        log.get().info("capture.begins", backend=backend.value)
        try:
            ended = capture(self._tools, backend)
        except CaptureUnavailable as exc:
            log.get().error("capture.unavailable", reason=str(exc), error=exc.code)
            return EndState.FAILED
        if ended.end is End.STOPPED:
            return EndState.STOPPED
        return EndState.SUCCESS if ended.end is End.SUCCESS else EndState.FAILED

    def _finish(self) -> EndState:
        """Keep the WARC files under stable names, build the ZIM if one is wanted, clear up if that was asked for."""
        self._place.check()
        output_dir = self._options.output_dir
        consolidate(output_dir, warcs_in(all_temp_dirs(output_dir)), self._tools.clock)
        files = self._own_files() if self._options.wants_build else []
        # Written before the build begins: one that fails, is stopped or killed must not cost the site a second crawl.
        self._state.note_crawl(awaits_build=bool(files))
        if self._tools.bell.stopping:
            return EndState.STOPPED
        if self._options.wants_build:
            built = self._build(files)
            if built is not EndState.SUCCESS:
                return built
            self._state.note_crawl(awaits_build=False)
        if self._options.cleanup:
            remove_temp_dirs(output_dir, all_temp_dirs(output_dir))
            (output_dir / RESUME_NAME).unlink(missing_ok=True)
            self._state.path.unlink(missing_ok=True)
            log.get().info("remains.cleaned")
        return EndState.SUCCESS

    def _own_files(self) -> list[WarcFile]:
        """Return this crawl's WARC files by their stable names."""
        stable = warcs_in([self._options.output_dir / WARCS])
        return [file for file in stable if file.identity not in self._earlier]

    def _build(self, files: list[WarcFile]) -> EndState:
        if not files:
            return EndState.NO_WARCS
        names = [inside_path(file.path, self._options.output_dir) for file in files]
        inside = [name for name in names if name is not None]
        if len(inside) != len(names):
            return EndState.PATH_CONVERSION
        arguments = build_arguments(self._options, inside)
        # A build reports no crawl statistics: watching it would take its silence for a stall.
        launch = prepare_launch(self._options, arguments)
        ended = Stage(self._tools, FINAL_BUILD, launch, watched=False).run()
        log.get().info("stage.ended", stage=FINAL_BUILD, end=ended.end.value, exit_code=ended.exit_code)
        folder = announced_temp_dir(ended.log.combined, self._options.output_dir)
        if folder is not None:
            self._state.add_temp_dir(folder)
        if ended.end is End.SUCCESS and not self._options.zim_path.exists():
            log.get().warning("build.zim_not_seen", expected=self._options.zim_path.name)
        if ended.end is End.SUCCESS:
            return EndState.SUCCESS
        return EndState.STOPPED if ended.end is End.STOPPED else EndState.BUILD_FAILED
