"""Replay: closest capture, rewriting, Memento, calendar, CDX. Reads only; it never writes a row."""
