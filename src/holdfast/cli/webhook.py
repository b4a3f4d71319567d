"""`holdfast webhook`: other systems that receive events. A server or a worker sends them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli.formatting import one_line
from holdfast.cli.parameters import command_group, one_of
from holdfast.cli.resource import Done, Listing, Reading, Writing, command
from holdfast.events import EventName
from holdfast.webhooks import queries, registry
from holdfast.webhooks.delivery import send_test
from holdfast.webhooks.records import DeliveryRecord, WebhookRecord, delivery_record, webhook_record
from holdfast.wiring.archive import Archive

_STATES = ("pending", "delivered", "failed")
app_command = command_group(
    "Other systems that receive events, signed by the Standard Webhooks convention. "
    "Example: holdfast webhook add https://example.org/hook --event 'execution.*'"
)
_WEBHOOKS = Listing(
    "webhooks", "id state waiting events sources url", "no webhooks yet; make one with: holdfast webhook add URL"
)
_DELIVERIES = Listing("deliveries", "id created_at event state attempts status next_at error", "no such deliveries")
WebhookId = Annotated[int, typer.Argument(help="A webhook's number.", metavar="WEBHOOK", min=0)]
Events = Annotated[
    list[str] | None,
    typer.Option("--event", help=f"Repeatable; all if left out: job.*, {', '.join(EventName)}.", metavar="NAME"),
]
Sources = Annotated[list[str] | None, typer.Option("--source", help="Only this source's; repeatable.", metavar="CODE")]
Note = Annotated[str | None, typer.Option("--description", help="What it is for.")]


@command(app_command, example="webhook add https://example.org/hook --event execution.failed --source hc")
def add(
    archive: Archive,
    session: Writing,
    url: Annotated[str, typer.Argument(help="Where messages are sent.", metavar="URL")],
    event: Events = None,
    source: Sources = None,
    description: Note = None,
) -> Done:
    """Add a system that receives events from now on; prints its secret only this once."""
    made = registry.add(
        session,
        archive.clock,
        archive.settings.webhooks,
        url=url,
        description=description,
        events=event or (),
        sources=source or (),
    )
    return _done(made, "added")


def _done(made: WebhookRecord, done: str) -> Done:
    secret = f"\nsecret (shown this once): {made.secret}" if made.secret is not None else ""
    return Done(made, f"webhook {made.id} {done}: {one_line(made.url)}{secret}")


@command(app_command, "list", listing=_WEBHOOKS, example="webhook list")
def list_webhooks(session: Reading) -> list[WebhookRecord]:
    """List webhooks."""
    rows = queries.webhooks(session, limit=registry.MAX_WEBHOOKS + 1000)
    waiting = queries.pending_counts(session)
    return [webhook_record(row, waiting=waiting.get(row.id, 0)) for row in rows]


@command(app_command, example="webhook show 1")
def show(session: Reading, webhook: WebhookId) -> WebhookRecord:
    """Show one webhook."""
    return registry.shown(session, webhook)


@command(app_command, example="webhook edit 1 --event 'job.*' --event change.detected")
def edit(
    archive: Archive,
    webhook: WebhookId,
    url: Annotated[str | None, typer.Option(help="On another host it gets a new secret.")] = None,
    event: Events = None,
    source: Sources = None,
    description: Note = None,
) -> Done:
    """Change a webhook; other fields keep their values."""
    changes = {"url": url, "description": description, "events": event, "sources": source}
    return _change(archive, "changed", changes, webhook)


def _change(archive: Archive, done: str, changes: dict[str, Any], webhook: WebhookId) -> Done:
    with archive.database.write() as session:
        changed = registry.change(session, archive.clock, webhook, settings=archive.settings.webhooks, **changes)
        return _done(changed, done)


for _name, _is_enabled, _about in (
    ("enable", True, "Send events to a disabled webhook again; events of the meantime are not sent."),
    ("disable", False, "Stop sending events to a webhook; queued deliveries stay."),
):
    _given = (f"{_name}d", {"enabled": _is_enabled})
    command(app_command, _name, about=_about, example=f"webhook {_name} 1", given=_given)(_change)


@command(app_command, example="webhook remove 1")
def remove(archive: Archive, webhook: WebhookId) -> Done:
    """Delete a webhook with its deliveries."""
    registry.remove(archive.database.write, archive.clock, webhook)
    return Done({"removed": webhook}, f"webhook {webhook} removed")


@command(app_command, "rotate-secret", example="webhook rotate-secret 1")
def rotate_secret(
    archive: Archive,
    session: Writing,
    webhook: WebhookId,
    at_once: Annotated[bool, typer.Option("--at-once", help="The old one is known to others: forget it now.")] = False,
) -> Done:
    """Create a new secret and print it, only this once; for a day, messages are also signed with the old one."""
    return _done(registry.rotate(session, archive.clock, webhook, at_once=at_once), "has a new secret")


@command(app_command, "test", example="webhook test 1")
def send_message(archive: Archive, webhook: WebhookId) -> Done:
    """Send a test message and print the response; exit code 1 if it was rejected."""
    number = send_test(archive.database, archive.clock, archive.settings.webhooks, webhook)
    sent = registry.find_delivery(archive.database, number)
    last = sent.log[-1]
    answer = f"\nit answered: {one_line(last.answer)}" if last.answer else ""
    said = f"{last.status or 'no answer'} after {last.took_ms} ms: {last.error or 'the message was taken'}{answer}"
    return Done(sent, said, is_success=sent.state == "delivered")


@command(app_command, listing=_DELIVERIES, example="webhook deliveries 1 --state failed")
def deliveries(
    session: Reading,
    webhook: WebhookId,
    state: Annotated[str | None, typer.Option(help=f"One of {', '.join(_STATES)}.")] = None,
    before: Annotated[int | None, typer.Option(min=0, help="Only those with a smaller number.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Deliveries to show.")] = 50,
) -> list[DeliveryRecord]:
    """List the deliveries of a webhook, newest first, with their results."""
    registry.find(session, webhook)
    rows = queries.deliveries(
        session, webhook_id=webhook, before=before, state=one_of(state, _STATES, "--state"), limit=limit
    )
    logs = queries.attempts_of(session, [row.id for row in rows])
    return [delivery_record(row, logs[row.id]) for row in rows]


@command(app_command, example="webhook redeliver 1 17")
def redeliver(
    archive: Archive,
    session: Writing,
    webhook: WebhookId,
    delivery: Annotated[int, typer.Argument(help="A delivery's number.", metavar="DELIVERY", min=0)],
) -> Done:
    """Queue a delivery again, with the same id and body; a server or a worker sends it."""
    queued = registry.redeliver(session, archive.clock, webhook, delivery)
    return Done(queued, f"delivery {delivery} is queued again")
