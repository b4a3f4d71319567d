"""Entry point of `archive-tool`: parse arguments, lock the output directory, run, report the result.

Exit code 0 is success, 1 a crawl that failed or was stopped, 2 wrong usage or an internal error.
"""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from holdfast import log
from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError
from holdfast.zimit.capture import crawl_command
from holdfast.zimit.docker import crawl_arguments, prepare_launch
from holdfast.zimit.errors import ToolConfigRefused
from holdfast.zimit.flags import Backend, Options, read_options
from holdfast.zimit.outcome import EndState
from holdfast.zimit.output_directory import (
    MANAGED_NAME,
    RESUME_NAME,
    forget_end,
    hold_output,
    load_state,
    note_end,
    open_place,
)
from holdfast.zimit.run import RunMode, Survey, ToolRun, survey
from holdfast.zimit.stage import StopRequest, Tools


def describe_plan(options: Options, found: Survey, workers: int) -> str:
    measures = {
        "workers": options.adaptive_workers,
        "VPN rotation": options.rotates_vpn,
        "restart": options.adaptive_restart,
    }
    adaptive = [word for word, wanted in measures.items() if wanted]
    watch = f"every {options.check_every_s:g} s, stalled after {options.stall_s:g} s" if options.monitored else "off"
    last = found.statistics
    facts = {
        "name": options.name,
        "seeds": " ".join(options.seeds),
        "output directory": str(options.output_dir),
        "capture backend": options.backend.value,
        "run mode": found.mode.value if found.mode else f"none: {options.zim_path.name} exists",
        "reset first": found.reset or "no",
        "earlier": f"{found.temp_dirs} temporary directories, {found.warcs} WARC files",
        "last statistics": f"{last.crawled} of {last.total} crawled" if last else "none",
        "workers": str(workers),
        "monitoring": watch,
        "adaptive": ", ".join(adaptive) or "nothing",
        "fallback": options.fallback.value if options.fallback else "none",
        "final build": options.zim_path.name if options.wants_build else "skipped",
        "command": shlex.join(_command(options, found, workers)),
    }
    return "\n".join([*(f"{name}: {value}" for name, value in facts.items()), "dry run: nothing was started"])


def _command(options: Options, found: Survey, workers: int) -> list[str]:
    if options.backend is not Backend.BROWSERTRIX:
        return crawl_command(options)
    config: Path | None = None
    # A dry run writes nothing: it names the file that the run would make first.
    if found.mode is RunMode.RESUME and found.reset is None:
        config = options.output_dir / RESUME_NAME
    elif options.managed_config is not None:
        config = options.output_dir / MANAGED_NAME
    return prepare_launch(options, crawl_arguments(options, workers, config))[1]


def main() -> None:
    sys.exit(run_tool(sys.argv[1:]))


def run_tool(arguments: Sequence[str]) -> int:
    options = read_options(arguments)
    log.configure(options.log_level)
    try:
        if options.dry_run:
            state = load_state(options.output_dir, options.workers)
            print(describe_plan(options, survey(options), state.current_workers))
            return 0
        ended = _run(options)
    except ToolConfigRefused as exc:
        # As for wrong usage: a caller that tries again gets the same.
        print(f"archive-tool: error: {exc}", file=sys.stderr)
        return 2
    except HoldfastError as exc:
        log.get().error("run.refused", error=exc.code)
        print(f"archive-tool: {exc}", file=sys.stderr)
        ended = EndState.FAILED
    except OSError as exc:
        print(f"archive-tool: {exc.filename or 'the disk'} failed, errno {exc.errno}: {exc.strerror}", file=sys.stderr)
        ended = EndState.FAILED
    # Exit code 2, as for wrong usage: an error of ours is no crawl that failed.
    except Exception:
        traceback.print_exc()
        return 2
    log.get().info("run.ended", state=ended.value, exit_code=ended.exit_code)
    # The last line, whatever happened: callers read it and the exit code.
    print(f"archive-tool: {ended.value}")
    return ended.exit_code


def _run(options: Options) -> EndState:
    clock = SystemClock()
    stop_request = StopRequest(clock)
    # Before anything is held: a signal must not end the tool between the lock and the first look at it.
    stop_request.catch_signals()
    place = open_place(options.output_dir, options.store_root)
    with hold_output(options.output_dir):
        # Under the lock: from here on the directory says of no run that it is over.
        forget_end(options.output_dir)
        state = load_state(options.output_dir, options.workers)
        # Asked before each write of the state: a mount that vanished is never written through.
        state.guard = place.check_identity
        ended = ToolRun(Tools(options, state, clock, stop_request), place, survey(options)).execute()
        place.check_identity()
        # Still under the lock: a worker that finds the directory free finds this word, too.
        note_end(options.output_dir, ended.value, ended.exit_code, clock.now())
        return ended
