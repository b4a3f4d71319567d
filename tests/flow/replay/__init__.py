"""Replay in a real browser, with the live web switched off."""
