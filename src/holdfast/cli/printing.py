"""Commands are functions that return what they found; this prints it, as text or as JSON. It opens no archive.

`command` gives every command the options `--json` and `--home`, opens what its function works with, and prints the
answer: a record or a mapping (field by field), a list of records (a table), or `Done` (a sentence). A function that
takes `json` prints while it works, and may return nothing; one that returns nothing has no `--json` of its own. With
an option `apply`, JSON says whether it was given, and text says that nothing was changed if it was not.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_type_hints

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, fields, table
from holdfast.cli.parameters import AsJson, Home, configure_log
from holdfast.cli.runner import with_example
from holdfast.config import Settings
from holdfast.records import Spelling, encode, is_record, shown_fields

Opener = Callable[[Settings], AbstractContextManager[Any]]
DRY_RUN = "dry run: nothing was changed; do it with --apply"


class Done(NamedTuple):
    """What a command did: the record for `--json`, and sentences for people; without one, the record's fields."""

    record: Any
    sentence: str | Iterable[str] | None = None
    is_success: bool = True
    errors: Iterable[str] = ()
    """Printed on standard error, without `--json`."""


class Rows(NamedTuple):
    """A list, with additional fields of its JSON, and sentences that replace the usual ones."""

    rows: Sequence[Any]
    fields: Mapping[str, Any] = MappingProxyType({})
    if_empty: str | None = None
    footer: str = ""


class Listing(NamedTuple):
    """How a list is printed: its key in JSON, its columns, and the sentence for an empty list.

    A column is an attribute, also one of an attribute; `attribute=head` prints another heading.
    """

    key: str
    columns: str
    if_empty: str


def command(
    app: typer.Typer, name: str | None = None, **declared: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a command of a group, declared as in `runnable`."""

    def registered(function: Callable[..., Any]) -> Callable[..., Any]:
        app.command(name)(runnable(**declared)(function))
        return function

    return registered


def runnable(
    *,
    opened: Opener,
    example: str,
    listing: Listing | None = None,
    given: tuple[Any, ...] = (),
    about: str | None = None,
    note: str = "",
    is_quiet: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a command of a function of what `opened` opens, of the values `given`, and of the command's own arguments.

    Its first parameters may be annotated with a function that opens them from what `opened` opens; they are closed
    after the command. The command prints what the function returns; exit code 1 if that is no success. Several
    commands of one function have values and an `about` of their own. A quiet one logs errors only, unless a level
    is set.
    """

    def made(function: Callable[..., Any]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True)
        parameters = list(own.parameters.values())
        sources = [source for one in parameters if (source := _source(one))]
        takes_opened = _source(parameters[0]) is None
        parameters = parameters[takes_opened + len(sources) + len(given) :]
        options = [option for one in parameters for option in _options(one)]
        takes_json = "json" in own.parameters
        if not takes_json and own.return_annotation is not None:
            options.append(_option("json", AsJson, False))
        options.append(_option("home", Home, None))

        def run(home: Path | None, json: bool = False, **values: Any) -> None:
            settings = config.load(home=home)
            configure_log(settings, unless_set="ERROR" if is_quiet else "WARNING", as_json=False)
            apply = values.get("apply")
            for one in filter(_is_group, parameters):
                values[one.name] = one.annotation(**{name: values.pop(name) for name in one.annotation._fields})
            with opened(settings) as archive, ExitStack() as stack:
                first = [archive] if takes_opened else []
                first += [stack.enter_context(source(archive)) for source in sources]
                answer = function(*first, *given, **values, **({"json": json} if takes_json else {}))
            if answer is not None:
                _print(answer, listing, as_json=json, apply=apply)

        run.__signature__ = own.replace(parameters=options)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in options}
        run.__name__, run.__doc__ = (
            function.__name__,
            with_example(about or function.__doc__, example, note),
        )
        return run

    return made


def counter(what: str) -> Callable[[int], None]:
    """Return a function that shows a count on a terminal, in one line that the answer of the command replaces."""

    def seen(count: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{count:,} {what}", end="", file=sys.stderr, flush=True)

    return seen


def clear_counter() -> None:
    """Remove the line of a counter from the terminal."""
    if sys.stderr.isatty():
        print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _source(parameter: inspect.Parameter) -> Callable[..., Any] | None:
    return next(filter(callable, getattr(parameter.annotation, "__metadata__", ())), None)


def _options(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return an option, or the options of a group: a NamedTuple that several commands take."""
    if not _is_group(parameter):
        return [_option(parameter.name, parameter.annotation, parameter.default)]
    group = parameter.annotation
    hints, defaults = get_type_hints(group, include_extras=True), group._field_defaults
    return [_option(name, hints[name], defaults.get(name, inspect.Parameter.empty)) for name in group._fields]


def _is_group(parameter: inspect.Parameter) -> bool:
    return isinstance(parameter.annotation, type) and hasattr(parameter.annotation, "_fields")


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _print(answer: Any, listing: Listing | None, *, as_json: bool, apply: bool | None) -> None:
    done = answer if isinstance(answer, Done) else Done(answer)
    clear_counter()
    if as_json:
        found = _as_json(done.record, listing)
        print(dumps(found if apply is None else {"applied": apply, **found}))
    else:
        shown = _as_text(done.record, listing) if done.sentence is None else done.sentence
        if shown := shown if isinstance(shown, str) else "\n".join(shown):
            print(shown)
        for error in done.errors:
            print(error, file=sys.stderr)
        if apply is False:
            print(DRY_RUN)
    if not done.is_success:
        raise typer.Exit(1)


def _as_json(found: Any, listing: Listing | None) -> Any:
    if listing is not None:
        listed = found if isinstance(found, Rows) else Rows(found)
        found = {listing.key: listed.rows, **listed.fields}
    return encode(found, spelling=Spelling.COMMAND)


def _as_text(answer: Any, listing: Listing | None) -> str:
    if listing is None:
        return described(answer)
    listed = answer if isinstance(answer, Rows) else Rows(answer)
    if not listed.rows:
        return listed.if_empty or listing.if_empty
    printed = rows_table(listing.columns.split(), listed.rows)
    return f"{printed}\n{listed.footer}" if listed.footer else printed


def picked(found: Any, names: str, **more: Any) -> dict[str, Any]:
    """Return some attributes of an object, and what else a command says of it, for `--json`.

    `name=path.to.attribute` gives a value another name.
    """
    parts = [one.partition("=") for one in names.split()]
    return {**more, **{name: attrgetter(path or name)(found) for name, _, path in parts}}


def described(answer: Any) -> str:
    """Return a record or a mapping field by field, with the lists of records that it holds as tables below."""
    values = answer if isinstance(answer, Mapping) else picked(answer, " ".join(_names(answer)))
    inner = {
        name: rows for name, rows in values.items() if isinstance(rows, list) and rows and is_record(rows[0].__class__)
    }
    flat = fields([(name.replace("_", " "), value) for name, value in values.items() if name not in inner])
    return "\n".join([flat, *(rows_table(_names(rows[0]), rows) for rows in inner.values())])


def _names(value: Any) -> list[str]:
    return [one.name for one in shown_fields(value.__class__)]


def rows_table(names: Sequence[str], rows: Sequence[Any]) -> str:
    """Return rows as a table; a name is a column as in `Listing`."""
    columns = [one.partition("=") for one in names]
    heads = [(head or name).replace("_", " ") for name, _, head in columns]
    return table(heads, [[attrgetter(name)(row) for name, _, _ in columns] for row in rows])
