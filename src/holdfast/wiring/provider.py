"""Requests to an identity provider over HTTP, guarded like every other outgoing request."""

from __future__ import annotations

from holdfast import __version__, log
from holdfast.auth.errors import ProviderFailed
from holdfast.auth.oidc import AskProvider, IdentityProvider
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.types import Fetched, FetchRequest
from holdfast.warc.payload import parse_head, payload_chunks

_log = log.get()


def provider_of(settings: Settings, clock: Clock) -> IdentityProvider:
    """Return the configured identity provider; raise Invalid if its settings are incomplete."""
    return IdentityProvider(settings.auth, asking(settings, clock), clock)


def asking(settings: Settings, clock: Clock) -> AskProvider:
    """Return a client for a provider: one connection at a time, to addresses that the guard allows."""
    guard = AddressGuard(settings.auth.oidc_allow_networks)
    speaking = ClientSettings(
        user_agent=f"holdfast/{__version__}", accept="application/json", connect_timeout_s=5.0, max_connections=4
    )

    async def ask(request: FetchRequest) -> bytes:
        # A client per request: sign-ins are rare, and a client belongs to one loop.
        client = Client(speaking, guard, clock)
        try:
            headers = (("Accept-Encoding", "identity"), *request.headers)
            found = await client.fetch(
                FetchRequest(
                    url=request.url,
                    headers=headers,
                    content=request.content,
                    deadline_s=request.deadline_s,
                    max_body_bytes=request.max_body_bytes,
                )
            )
            if not isinstance(found, Fetched):
                _log.warning("auth.provider_silent", url=request.url, problem=found.problem.value)
                raise ProviderFailed("the identity provider does not answer; try again, or ask an administrator")
            try:
                content = b"".join(payload_chunks(parse_head(found.response_head), found.body))
            finally:
                found.body.close()
            if found.status != 200 or found.truncated is not None:
                _log.warning("auth.provider_refused", url=request.url, status=found.status)
                raise ProviderFailed("the identity provider refuses what it was asked; the server's log says more")
            return content
        finally:
            await client.close()

    return ask
