"""Pages whose main text is known, because our own generator wrote them, and the floors that extraction must keep."""
