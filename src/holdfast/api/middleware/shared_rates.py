"""Counts requests in Redis, shared by all processes; if Redis fails, requests are still served."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import BlockingConnectionPool
from redis.exceptions import RedisError

from holdfast import log
from holdfast.api.middleware.rate_limits import CountedRequest, Rates, Tier, counted_request
from holdfast.clock import Clock

_log = log.get()
# Valkey speaks the same protocol.
_SCHEME = re.compile(r"^valkey(?=s?://)")
_CONNECTIONS = 8
# Timeout of Redis for one request, and the pause after a failure.
_ANSWER_S = 0.5
_AWAY_S = 5.0


class SharedRates:
    """Counts in Redis, shared by all processes that use it; in this process while Redis is down.

    One script in Redis counts a request, so that of many concurrent requests exactly as many pass as the limit
    allows.
    """

    def __init__(self, url: str, clock: Clock, *, prefix: str = "holdfast:rates") -> None:
        self._clock, self._own = clock, Rates(clock)
        self._away_until = 0.0
        # Use a few connections and wait for them: a flood of requests must not become a flood of connections.
        self._pool = BlockingConnectionPool.from_url(
            _SCHEME.sub("redis", url),
            max_connections=_CONNECTIONS,
            timeout=_ANSWER_S,
            socket_timeout=_ANSWER_S,
            socket_connect_timeout=_ANSWER_S,
        )
        # RedisStorage's type hints allow only numbers and strings as options, but it also accepts a connection pool.
        options: dict[str, Any] = {"connection_pool": self._pool}
        storage = RedisStorage("async+redis://", implementation="redispy", key_prefix=prefix, **options)
        self._limiter = MovingWindowRateLimiter(storage)

    @property
    def is_away(self) -> bool:
        """Whether Redis recently failed to respond and is not used for now."""
        return self._clock.monotonic() < self._away_until

    async def close(self) -> None:
        """Close the connections; call it on the event loop that counted requests."""
        await self._pool.disconnect()

    async def count(self, tier: Tier, key: str) -> CountedRequest:
        """Count a request if its window has room for it; never fails, and never takes longer than half a second."""
        if self.is_away:
            return self._own.count(tier, key)
        item = RateLimitItemPerMinute(tier.per_minute)
        try:
            async with asyncio.timeout(_ANSWER_S):
                has_room = await self._limiter.hit(item, tier.name, key)
                reset, left = await self._limiter.get_window_stats(item, tier.name, key)
        except (RedisError, OSError, TimeoutError) as exc:
            # Serve readers without Redis: each process counts for itself until it is back.
            self._away_until = self._clock.monotonic() + _AWAY_S
            _log.warning("rates.redis_away", message=str(exc) or type(exc).__name__, retry_s=_AWAY_S)
            return self._own.count(tier, key)
        # In Redis, windows use the wall clocks of the counting processes.
        return counted_request(has_room, left, reset - self._clock.now().timestamp())
