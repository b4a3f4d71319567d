"""`archive-tool`: reads its arguments, takes hold of the output directory, runs, and says how it ended.

Exit code 0 is success, 1 a crawl that failed or was stopped, 2 wrong usage or a fault of the program itself.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from holdfast import log
from holdfast.archive_tool.bell import Bell
from holdfast.archive_tool.docker import Docker
from holdfast.archive_tool.files import open_place
from holdfast.archive_tool.hold import LastEnd, forget_end, hold_output, note_end
from holdfast.archive_tool.options import Options, read_options
from holdfast.archive_tool.plan import describe_plan
from holdfast.archive_tool.run import EndState, Run
from holdfast.archive_tool.stage import Tools
from holdfast.archive_tool.state import load_state
from holdfast.archive_tool.strategies import Strategies
from holdfast.archive_tool.survey import survey
from holdfast.archive_tool.times import Times
from holdfast.archive_tool.vpn import Vpn
from holdfast.clock import SystemClock
from holdfast.errors import HoldfastError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit."""
    sys.exit(run_tool(sys.argv[1:] if arguments is None else arguments))


def run_tool(arguments: Sequence[str]) -> int:
    """Return the exit code; SystemExit(2) for wrong usage."""
    options = read_options(arguments)
    log.configure(options.log_level)
    try:
        if options.dry_run:
            state = load_state(options.output_dir, options.workers)
            print(describe_plan(options, survey(options), state.current_workers))
            return 0
        ended = _run(options)
    except HoldfastError as exc:
        log.get().error("run.refused", error=exc.code)
        print(f"archive-tool: {exc}", file=sys.stderr)
        ended = EndState.FAILED
    except OSError as exc:
        print(f"archive-tool: {exc.filename or 'the disk'} failed, errno {exc.errno}: {exc.strerror}", file=sys.stderr)
        ended = EndState.FAILED
    except Exception:
        traceback.print_exc()
        return 2
    log.get().info("run.ended", state=ended.value, exit_code=ended.exit_code)
    print(f"archive-tool: {ended.value}")
    return ended.exit_code


def _run(options: Options) -> EndState:
    clock = SystemClock()
    bell = Bell(clock)
    bell.catch_signals()
    times = Times.scaled(options.time_scale)
    place = open_place(options.output_dir, options.store_root)
    with hold_output(options.output_dir):
        forget_end(options.output_dir)
        state = load_state(options.output_dir, options.workers)
        state.guard = place.check_identity
        vpn = Vpn(options.watch.vpn_command, times, bell) if options.watch.vpn_command else None
        tools = Tools(
            options=options, state=state, clock=clock, bell=bell, docker=Docker(times), times=times,
            strategies=Strategies(options.watch, state, clock, vpn),
        )  # fmt: skip
        ended = Run(tools, place, survey(options)).execute()
        place.check_identity()
        note_end(options.output_dir, LastEnd(ended.value, ended.exit_code), clock.now())
        return ended
