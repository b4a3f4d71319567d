"""What every request passes, outermost first: request ids, requests at once, host routing, headers, origins, rates,
bodies, HEAD as GET, usage.

Plain ASGI. None of it buffers a response, so that exports and replay stream.
"""
