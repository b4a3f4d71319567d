"""Every command of the guides, typed as it stands there, in a fresh folder, against the bundled website."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

from holdfast.demo.server import DemoSite
from tests import forked, guides, needs
from tests.archive import Shot, build_archive
from tests.guides import ROOT, STANDINS, Block, Command, Kind
from tests.patience import deadline

_BIN = Path(sys.executable).parent
_LONG_S = 120.0
Rename = Callable[[str], str]


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def environment(**more: str) -> dict[str, str]:
    """Return what commands find around them: no setting but these, and the commands of this environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    path = os.pathsep.join((str(_BIN), str(STANDINS), os.environ["PATH"], "/usr/sbin"))
    quiet = {"HOLDFAST_INDEX_NICE": "0", "HOLDFAST_DISK_FREE_BYTES": "0", "HOLDFAST_DISK_FREE_PERCENT": "0"}
    return {**kept, **quiet, "PATH": path, **more}


class Terminal:
    """A shell that stays open, so that `cd` and `export` hold for the lines behind them, and what was left running.

    A line that is nothing but a short command of holdfast is run where the shell is, without a new Python.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str], rename: Rename) -> None:
        self.folder, self._rename = folder, rename
        self._output = folder / ".printed"
        self._left_running: list[int] = []
        answers, self._answers = os.pipe()
        self._codes = os.fdopen(answers, "r", encoding="ascii")
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**variables, "CODES": str(self._answers)},
            pass_fds=(self._answers,),
            start_new_session=True,
        )
        self.working_folder, self._variables = folder, dict(variables)

    @property
    def is_serving(self) -> bool:
        """Whether something was left running."""
        return bool(self._left_running)

    def run(self, place: str, command: Command) -> None:
        """Type a line and wait for its end; AssertionError if it ends otherwise than the page shows."""
        line = self._rename(command.text)
        if is_plain(line):
            code = self._run(shlex.split(line)[1:])
        else:
            code = self._type(f"{{ {line}\n}} >{self._output} 2>&1 </dev/null; echo $? >&$CODES")
        printed = self._output.read_text("utf-8")
        assert code == command.code, f"{place}: {command.text}\nended with {code}:\n{printed}"
        missing = guides.not_shown(tuple(map(self._rename, command.shown)), printed)
        assert missing is None, f"{place}: {command.text}\ndid not print {missing!r}, but:\n{printed}"
        if re.search(r"\b(?:cd|export|set)\b", line):
            self._look_around()

    def _run(self, words: list[str]) -> int:
        """Run a plain command of ours without the shell; a start costs a tenth so."""
        with self._output.open("w") as output:
            done = forked.run(
                [sys.executable, "-m", "holdfast.cli.main", *words], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, cwd=self.working_folder, env=self._variables,
            )  # fmt: skip
        return done.returncode

    def leave_running(self, place: str, command: Command) -> None:
        """Type a line that goes on, and wait until it printed what the page shows."""
        output = self.folder / f".printed-{len(self._left_running)}"
        process = self._type(f"{self._rename(command.text)} >{output} 2>&1 </dev/null & echo $! >&$CODES")
        self._left_running.append(process)
        shown, until, pause = tuple(map(self._rename, command.shown)), monotonic() + deadline(_LONG_S), Event()
        while guides.not_shown(shown, printed := output.read_text("utf-8") if output.exists() else ""):
            assert monotonic() < until, f"{place}: {command.text}\nprinted only:\n{printed}"
            pause.wait(0.05)

    def _type(self, line: str) -> int:
        """Send a line that writes one number to `$CODES`; return that number."""
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{line}\n")
        self._shell.stdin.flush()
        return int(self._codes.readline())

    def _look_around(self) -> None:
        """Learn in which folder the shell is by now, and with which variables."""
        self._type(f"{{ pwd; env -0; }} >{self._output}; echo 0 >&$CODES")
        folder, _, variables = self._output.read_text("utf-8").partition("\n")
        self.working_folder = Path(folder)
        pairs = (pair.partition("=") for pair in variables.split("\0") if pair)
        self._variables = {name: value for name, _, value in pairs}

    def finish(self) -> None:
        """End what was left running, in order."""
        for process in self._left_running:
            self._type(f"kill -INT {process}; wait {process}; echo $? >&$CODES")

    def close(self) -> None:
        """End the shell and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        with suppress(BrokenPipeError):
            self._shell.communicate()
        self._codes.close()
        os.close(self._answers)


def is_plain(line: str) -> bool:
    """Return whether a line is one command of holdfast that ends by itself, starts no process and needs no shell."""
    bare = re.sub(r"'[^']*'|\"[^\"$]*\"", "", line)
    name = bare.removeprefix("holdfast ").partition(" ")[0]
    return bare.startswith("holdfast ") and name not in STARTS_PROCESSES and not re.search(r"[|<>;&$*?`\\]", bare)


STARTS_PROCESSES = ("api", "crawl", "demo", "start-worker")


@contextmanager
def opened(folder: Path, variables: Mapping[str, str], rename: Rename) -> Iterator[Terminal]:
    """Open a terminal in a folder; whatever it started is gone afterwards."""
    terminal = Terminal(folder, variables, rename)
    try:
        yield terminal
        terminal.finish()
    finally:
        terminal.close()


def placeholders(site: DemoSite, port: int) -> Rename:
    """Return what turns the names of the pages into those of this test: the website, the port, this year."""
    host, year = f"{site.address}:{site.port}", datetime.now(UTC).year
    renamed = [
        (r"https://example\.org", f"http://{host}"),
        (r"(?<![\w.@-])example\.org", host),
        (r"(?<![\w./-])example-org", site.address.replace(".", "-")),
        (r"\b8060\b", str(port)),
        (r"\b2027(0101)?\b", rf"{year + 1}\1"),
        (r"\b2026(?!\d)", str(year)),
        (r"\bdelay_s=2\b", "delay_s=0"),
    ]

    def rename(text: str) -> str:
        for pattern, replacement in renamed:
            text = re.sub(pattern, replacement, text)
        return text

    return rename


@pytest.mark.timeout(900)
def test_every_command_of_the_guides_does_what_its_page_shows(tmp_path: Path) -> None:
    needs.program("curl")
    port = free_port()
    variables = environment(
        HOLDFAST_ALLOW_NETWORKS="127.0.0.0/8",
        HOLDFAST_POLITENESS_DELAY_S="0",
        HOLDFAST_API_PORT=str(port),
        HOLDFAST_API_RATE_LIMITING="false",
        TMPDIR=str(tmp_path),
    )
    with DemoSite("127.0.0.9") as site:
        rename = placeholders(site, port)
        with opened(tmp_path, variables, rename) as terminal:
            for page in guides.IN_ONE_FOLDER:
                type_page(page, terminal, rename, {"the site changes": site.change})


def type_page(page: str, terminal: Terminal, rename: Rename, happenings: Mapping[str, Callable[[], None]]) -> None:
    """Do with each block of a page what its kind says."""
    session = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    names: dict[str, object] = {}
    for block in guides.blocks(page):
        if block.kind is Kind.TYPED:
            for command in guides.commands(block):
                terminal.run(block.place, command)
        elif block.kind is Kind.KEEPS_RUNNING:
            for command in guides.commands(block):
                terminal.leave_running(block.place, command)
        elif block.kind is Kind.PYTHON:
            type_session(block, rename, session, names, terminal.working_folder)
        elif block.kind is Kind.MEANWHILE:
            happenings[block.text]()


def type_session(
    block: Block, rename: Rename, session: doctest.DocTestRunner, names: dict[str, object], folder: Path
) -> None:
    """Type a Python session; what it defines is there for the next one of the page."""
    told: list[str] = []
    parsed = doctest.DocTestParser().get_doctest(rename(block.text), names, block.place, block.page, block.line)
    assert parsed.examples, f"{block.place}: a session without a line that begins with >>>"
    with chdir(folder):
        session.run(parsed, out=told.append, clear_globs=False)
    names.update(parsed.globs)
    assert not told, "".join(told)


PROGRAMS = (
    "apt-get",
    "createdb",
    "createuser",
    "export",
    "git",
    "install",
    "journalctl",
    "make",
    "nginx",
    "pg_dump",
    "systemctl",
    "useradd",
)
"""What commands that are not run may call; anything else is a mistake of the page, or wants to be looked up here."""
NOT_RUN = [
    (block.place, command.text)
    for page in guides.all_pages()
    for block in guides.blocks(page)
    if block.kind is Kind.NOT_RUN
    for command in guides.commands(block)
]


@pytest.mark.parametrize(("place", "text"), NOT_RUN)
def test_a_command_that_is_not_run_could_be(place: str, text: str) -> None:
    words = shlex.split(text)
    while words[0] == "sudo":
        words = words[3:] if words[1] == "-u" else words[1:]
    program = words[0]
    if program.startswith(".venv/bin/"):
        assert (_BIN / program.removeprefix(".venv/bin/")).exists(), place
        assert all((ROOT / word).exists() for word in words[1:] if word.startswith(("tests/", "src/"))), place
        return
    assert program in PROGRAMS, f"{place}: is {program} a program? Add it to PROGRAMS, and its options are looked up"
    if program == "make":
        targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
        assert targets & set(words[1:]), f"{place}: the Makefile has no such target"
    if program == "systemctl":
        assert words[1] in help_of(program), place
        assert {word.removesuffix(".timer") for word in words[2:] if word.startswith("holdfast")} <= units(), place
    options = [word.partition("=")[0] for word in words[1:] if word.startswith("--")]
    if options and shutil.which(program):
        missing = [option for option in options if not re.search(rf"{re.escape(option)}\b", help_of(program))]
        assert missing == [], f"{place}: {program} has no such option"


def help_of(program: str) -> str:
    """Return what a program prints about itself."""
    asked = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=60)
    return asked.stdout + asked.stderr


def units() -> set[str]:
    """Return the names of the services and timers that the deployment page holds."""
    files = [Path(block.file) for block in guides.blocks(guides.DEPLOYMENT) if block.kind is Kind.INI]
    return {file.stem for file in files if file.suffix in (".service", ".timer")}


class Server:
    """A machine as the deployment page sets it up, below one folder: its files, its ports, its certificate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.api, self.http, self.https = free_port(), free_port(), free_port()
        blocks = guides.blocks(guides.DEPLOYMENT)
        self._files: dict[str, str] = {}
        for block in blocks:
            if block.kind in (Kind.INI, Kind.NGINX):
                # A second block of the same file holds lines that only some installations add.
                self._files.setdefault(block.file, block.text)
        for name, text in self._files.items():
            path = Path(self.rename(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.rename(text), "utf-8")
        (folder / "opt").mkdir()
        (folder / "var/log/nginx").mkdir(parents=True)
        (folder / "opt/holdfast/.venv").mkdir(parents=True)
        (folder / "opt/holdfast/.venv/bin").symlink_to(_BIN)

    def rename(self, text: str) -> str:
        """Return a text of the page with this machine's folders and ports."""
        text = re.sub(r"(?<![\w./])/(etc|srv|opt|var)/", rf"{self.folder}/\1/", text)
        text = re.sub(r"\n *listen \[::\]:[^\n]*", "", text)
        text = re.sub(r"listen 80;", f"listen 127.0.0.1:{self.http};", text)
        text = re.sub(r"listen 443 ", f"listen 127.0.0.1:{self.https} ", text)
        return re.sub(r"127\.0\.0\.1:8060", f"127.0.0.1:{self.api}", text)

    def path(self, name: str) -> Path:
        """Return where a file of the page lies."""
        assert name in self._files, f"{guides.DEPLOYMENT} holds no {name}"
        return Path(self.rename(name))

    def unit_files(self) -> list[Path]:
        """Return the units of systemd."""
        return [Path(self.rename(name)) for name in self._files if name.startswith("/etc/systemd/")]


def test_the_units_of_the_deployment_page_are_units(tmp_path: Path) -> None:
    server = Server(tmp_path)
    verify = needs.program("systemd-analyze", package="systemd")

    told = subprocess.run(
        [verify, "verify", *map(str, server.unit_files())], capture_output=True, text=True, check=False
    )

    assert len(server.unit_files()) >= 4
    assert str(tmp_path) not in told.stderr, told.stderr
    assert told.returncode == 0, told.stderr


def test_the_deployment_page_serves_an_archive_through_nginx_with_tls(tmp_path: Path) -> None:
    nginx, openssl = needs.program("nginx", package="nginx-light"), needs.program("openssl")
    needs.program("curl")
    server = Server(tmp_path)
    home = tmp_path / "srv/holdfast"
    archive = build_archive(home, [Shot(url="https://example.org/")])
    archive.database.close()
    live = tmp_path / "etc/letsencrypt/live/archive.example.org"
    _write_certificate(openssl, live)
    # curl asks for the page's own names and ports, and finds this machine's nginx behind them.
    (tmp_path / ".curlrc").write_text(
        f'connect-to = "archive.example.org:443:127.0.0.1:{server.https}"\n'
        f'connect-to = "replay.example.net:443:127.0.0.1:{server.https}"\ncacert = "{live}/fullchain.pem"\n'
    )
    main = tmp_path / "nginx.conf"
    # Started as root, nginx would serve as another user, who may not write below this folder.
    user = "user root; " if os.geteuid() == 0 else ""
    main.write_text(
        f"{user}daemon off; pid {tmp_path}/nginx.pid; error_log stderr notice; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {tmp_path}/body; proxy_temp_path {tmp_path}/proxy;\n"
        f"include {server.path('/etc/nginx/conf.d/holdfast.conf')}; }}\n"
    )
    tested = subprocess.run([nginx, "-t", "-c", str(main)], capture_output=True, text=True, check=False)
    assert tested.returncode == 0, tested.stderr

    variables = environment(CURL_HOME=str(tmp_path), HOLDFAST_API_PORT=str(server.api))
    serve = Command(text="holdfast api", shown=("serving http",))
    proxy = Command(text=f"nginx -c {main}", shown=("start worker process",))
    with opened(tmp_path, variables, server.rename) as terminal:
        for block in guides.blocks(guides.DEPLOYMENT):
            for command in guides.commands(block) if block.kind is Kind.TYPED else ():
                if command.text.startswith("curl ") and not terminal.is_serving:
                    terminal.leave_running("the unit holdfast-api", serve)
                    terminal.leave_running("nginx", proxy)
                terminal.run(block.place, command)
        # 502 where the server, which refuses it, hangs up before all of it is sent; nginx itself would say 413.
        assert _sent_piece(tmp_path, variables) in ("401", "502"), "the largest piece reaches the server"
        secret = "what-only-a-member-has"
        opened_page = f"https://replay.example.net/!{secret}/web/2026/https://example.org/"
        signed_in = f"https://archive.example.org/signin/oidc/callback?code={secret}&state={secret}"
        for address in (
            opened_page,
            f"-e {opened_page} https://replay.example.net/style.css",
            f"{signed_in} -e {signed_in}",
        ):
            request = ["curl", "-s", "-o", "/dev/null", *address.split()]
            subprocess.run(request, env=variables, check=True, timeout=deadline(30))
        until, pause, log = monotonic() + deadline(_LONG_S), Event(), server.folder / "var/log/nginx"
        while "callback" not in (told := (log / "holdfast.log").read_text("utf-8")):
            assert monotonic() < until, told
            pause.wait(0.05)

    assert "/!-/web/2026/https://example.org/" in told
    assert "/signin/oidc/callback?-" in told
    assert secret not in told + (log / "holdfast-error.log").read_text("utf-8")


def _write_certificate(openssl: str, folder: Path) -> None:
    """Write a key and a certificate of both names, as Let's Encrypt would."""
    folder.mkdir(parents=True)
    names = "subjectAltName=DNS:archive.example.org,DNS:replay.example.net"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=archive.example.org"
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([openssl, *made.split(), "-addext", names, *files], check=True, capture_output=True)


def _sent_piece(folder: Path, variables: dict[str, str]) -> str:
    """Return the status of an upload's largest piece, sent without signing in."""
    client = (ROOT / "web/src/control/imports/tus.ts").read_text()
    [shift] = re.findall(r"LARGEST_PIECE = 64 << (\d+);", client)
    piece = folder / "piece"
    with piece.open("wb") as out:
        out.truncate(64 << int(shift))
    url = "https://archive.example.org/api/admin/uploads/1"
    sent = ["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "-X", "PATCH", "-T", str(piece), url]
    return subprocess.run(sent, capture_output=True, text=True, check=True, env={**os.environ, **variables}).stdout
