"""The CDX server: one table of snapshots, queried with the parameters of two archives. Bounded reads, streamed."""
