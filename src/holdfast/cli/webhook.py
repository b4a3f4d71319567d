"""`holdfast webhook`: other systems that are told of events. A server or a worker does the sending."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, fields, one_line, table
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.coordination.events import EventName
from holdfast.db.models import Webhook, WebhookAttempt, WebhookDelivery
from holdfast.webhooks import queries, registry
from holdfast.webhooks.delivery import send_test
from holdfast.webhooks.registry import Made, WebhookWish
from holdfast.wiring.archive import Archive, open_archive

app_command = command_group(
    "Other systems that are told of events, signed by the Standard Webhooks convention. "
    "Example: holdfast webhook add https://example.org/hook --event 'execution.*'"
)
WebhookId = Annotated[int, typer.Argument(help="A webhook's number.", metavar="WEBHOOK", min=0)]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", help=f"Repeatable; all if left out: job.*, {', '.join(EventName)}.", metavar="NAME"),
]
Sources = Annotated[list[str] | None, typer.Option("--source", help="Only this source's; repeatable.", metavar="CODE")]
Note = Annotated[str | None, typer.Option("--description", help="What it is for.")]
_STATES = ("pending", "delivered", "failed")


@app_command.command()
def add(
    url: Annotated[str, typer.Argument(help="Where messages are sent.", metavar="URL")],
    event: Events = None,
    source: Sources = None,
    description: Note = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Let a system be told of what happens from now on; prints its secret, this once.

    Example: holdfast webhook add https://example.org/hook --event execution.failed --source hc
    """
    wish = WebhookWish(url=url, description=description, events=tuple(event or ()), sources=tuple(source or ()))
    with open_archive(config.load(home=home)) as archive, archive.database.write() as session:
        made = registry.add(session, archive.clock, archive.settings.webhooks, wish)
    _print_made(made, "added", json=json)


def _print_made(made: Made, done: str, *, json: bool) -> None:
    if json:
        print(dumps({**_object(made.webhook), "secret": made.secret}))
        return
    print(f"webhook {made.webhook.id} {done}: {one_line(made.webhook.url)}")
    if made.secret is not None:
        print(f"secret (shown this once): {made.secret}")


@app_command.command(name="list")
def list_webhooks(json: AsJson = False, home: Home = None) -> None:
    """List webhooks.

    Example: holdfast webhook list
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows = queries.webhooks(session, limit=archive.settings.webhooks.most + 1000)
        waiting = queries.pending_counts(session)
    if json:
        print(dumps({"webhooks": [{**_object(row), "waiting": waiting.get(row.id, 0)} for row in rows]}))
    elif not rows:
        print("no webhooks yet; make one with: holdfast webhook add URL")
    else:
        head = ("webhook", "state", "waiting", "events", "sources", "url")
        shown = [
            (row.id, _state(row), waiting.get(row.id, 0), _words(row.events), _words(row.sources), row.url)
            for row in rows
        ]
        print(table(head, shown))


@app_command.command()
def show(webhook: WebhookId, json: AsJson = False, home: Home = None) -> None:
    """Show one webhook.

    Example: holdfast webhook show 1
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row = registry.find(session, webhook)
    if json:
        print(dumps(_object(row)))
        return
    print(
        fields(
            [
                ("webhook", row.id),
                ("url", row.url),
                ("description", row.description),
                ("state", _state(row)),
                ("events", _words(row.events)),
                ("sources", _words(row.sources)),
                ("made", row.created_at),
                ("made by", row.created_by),
            ]
        )
    )


@app_command.command()
def edit(
    webhook: WebhookId,
    url: Annotated[str | None, typer.Option("--url", help="On another host it gets a new secret.")] = None,
    event: Events = None,
    source: Sources = None,
    description: Note = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Change a webhook; what is not named stays as it is.

    Example: holdfast webhook edit 1 --event 'job.*' --event change.detected
    """
    wish = WebhookWish(
        url=url,
        description=description,
        events=None if event is None else tuple(event),
        sources=None if source is None else tuple(source),
    )
    _change(webhook, wish, "changed", json=json, home=home)


@app_command.command()
def enable(webhook: WebhookId, json: AsJson = False, home: Home = None) -> None:
    """Tell a webhook of events again that was disabled; what happened meanwhile is not made up for.

    Example: holdfast webhook enable 1
    """
    _change(webhook, WebhookWish(enabled=True), "enabled", json=json, home=home)


@app_command.command()
def disable(webhook: WebhookId, json: AsJson = False, home: Home = None) -> None:
    """Tell a webhook of nothing for now; what waits for it stays.

    Example: holdfast webhook disable 1
    """
    _change(webhook, WebhookWish(enabled=False), "disabled", json=json, home=home)


def _change(webhook: int, wish: WebhookWish, done: str, *, json: bool, home: Any) -> None:
    with open_archive(config.load(home=home)) as archive, archive.database.write() as session:
        made = registry.change(session, archive.clock, archive.settings.webhooks, webhook, wish)
    _print_made(made, done, json=json)


@app_command.command()
def remove(webhook: WebhookId, json: AsJson = False, home: Home = None) -> None:
    """Remove a webhook with its deliveries.

    Example: holdfast webhook remove 1
    """
    with open_archive(config.load(home=home)) as archive:
        registry.remove(archive.database.write, archive.clock, webhook)
    print(dumps({"removed": webhook}) if json else f"webhook {webhook} removed")


@app_command.command("rotate-secret")
def rotate_secret(
    webhook: WebhookId,
    at_once: Annotated[bool, typer.Option("--at-once", help="The old one is known to others: forget it now.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Make a new secret and print it, this once; for a day messages are signed with the old one, too.

    Example: holdfast webhook rotate-secret 1
    """
    with open_archive(config.load(home=home)) as archive, archive.database.write() as session:
        made = registry.rotate(session, archive.clock, webhook, at_once=at_once)
    _print_made(made, "has a new secret", json=json)


@app_command.command("test")
def send_message(webhook: WebhookId, json: AsJson = False, home: Home = None) -> None:
    """Send a test message and say what came back; exit code 1 if it was not taken.

    Example: holdfast webhook test 1
    """
    with open_archive(config.load(home=home)) as archive:
        number = send_test(archive.database, archive.clock, archive.settings.webhooks, webhook)
        row, log = _delivery(archive, number)
    last = log[-1] if log else None
    if json:
        print(dumps(_delivery_object(row, log)))
    elif last is not None:
        print(f"{last.status or 'no answer'} after {last.took_ms} ms: {last.error or 'the message was taken'}")
        if last.answer:
            print(f"it answered: {one_line(last.answer)}")
    if row.state != "delivered":
        raise typer.Exit(1)


@app_command.command()
def deliveries(
    webhook: WebhookId,
    state: Annotated[str | None, typer.Option("--state", help=f"One of {', '.join(_STATES)}.")] = None,
    before: Annotated[int | None, typer.Option("--before", min=0, help="Only those with a smaller number.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Deliveries to show.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List what was sent to a webhook or waits to be, newest first, and what it answered.

    Example: holdfast webhook deliveries 1 --state failed
    """
    if state is not None and state not in _STATES:
        raise typer.BadParameter(f"{state[:40]!r} is none of {', '.join(_STATES)}", param_hint="--state")
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        registry.find(session, webhook)
        rows = queries.deliveries(session, webhook_id=webhook, before=before, state=state, limit=limit)
        logs = queries.attempts_of(session, [row.id for row in rows])
    if json:
        print(dumps({"deliveries": [_delivery_object(row, logs[row.id]) for row in rows]}))
    elif not rows:
        print("no such deliveries" if state or before is not None else "nothing was sent to it yet")
    else:
        head = ("delivery", "queued", "event", "state", "tries", "status", "next try", "error")
        print(table(head, [_delivery_row(row, logs[row.id]) for row in rows]))
        if len(rows) == limit:
            print(f"go on with --before {rows[-1].id}")


def _delivery_row(row: WebhookDelivery, log: list[WebhookAttempt]) -> tuple[object, ...]:
    following = row.next_at if row.state == "pending" else None
    error = log[-1].error if log and row.state != "delivered" else None
    return row.id, row.created_at, row.event, row.state, row.attempts, row.status, following, error


@app_command.command()
def redeliver(
    webhook: WebhookId,
    delivery: Annotated[int, typer.Argument(help="A delivery's number.", metavar="DELIVERY", min=0)],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Queue a delivery again, with the same id and body; a server or a worker sends it.

    Example: holdfast webhook redeliver 1 17
    """
    with open_archive(config.load(home=home)) as archive:
        with archive.database.write() as session:
            registry.redeliver(session, archive.clock, webhook, delivery)
        row, log = _delivery(archive, delivery)
    print(dumps(_delivery_object(row, log)) if json else f"delivery {delivery} is queued again")


def _delivery(archive: Archive, number: int) -> tuple[WebhookDelivery, list[WebhookAttempt]]:
    with archive.database.read() as session:
        row = queries.delivery(session, number)
        if row is None:
            raise registry.DeliveryNotFound(number)
        return row, queries.attempts_of(session, [number])[number]


def _state(row: Webhook) -> str:
    return "enabled" if row.disabled_at is None else f"disabled ({row.disabled_reason})"


def _words(words: list[str]) -> str:
    return ", ".join(words) or "all"


def _object(row: Webhook) -> dict[str, Any]:
    return {
        "id": row.id,
        "url": row.url,
        "description": row.description,
        "events": row.events,
        "sources": row.sources,
        "enabled": row.disabled_at is None,
        "disabled_at": row.disabled_at,
        "disabled_reason": row.disabled_reason,
        "previous_secret_until": row.previous_until,
        "created_by": row.created_by,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _delivery_object(row: WebhookDelivery, log: list[WebhookAttempt]) -> dict[str, Any]:
    return {
        "id": row.id,
        "message_id": row.message_id,
        "event": row.event,
        "state": row.state,
        "attempts": row.attempts,
        "next_at": row.next_at if row.state == "pending" else None,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
        "body": row.body,
        "log": [
            {"at": one.at, "took_ms": one.took_ms, "status": one.status, "error": one.error, "answer": one.answer}
            for one in log
        ],
    }
