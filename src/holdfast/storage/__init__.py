"""Sealed files and other blobs: where they are stored, and how they are written, read and deleted."""
