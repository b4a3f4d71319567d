"""Middleware of every request, outermost first: request ids, concurrency, host routing, headers, origins, rates,
bodies, HEAD as GET, usage.

Plain ASGI. None of it buffers a response, so that exports and replay stream.
"""
