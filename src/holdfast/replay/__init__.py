"""Seeing pages as they were: closest capture, rewriting, Memento, calendar, CDX. It reads; it never writes a row."""
