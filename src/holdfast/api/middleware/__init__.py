"""What every request passes, outermost first: shell, at_once, entrance, headers, origins, rates, bodies, usage.

Plain ASGI. None of it buffers a response, so that exports and replay stream.
"""
