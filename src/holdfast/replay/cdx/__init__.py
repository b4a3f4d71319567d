"""The CDX server: one table of snapshots asked in the words of two archives. It reads, within limits, and streams."""
