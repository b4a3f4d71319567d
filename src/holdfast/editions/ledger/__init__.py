"""The coverage ledger: one row for each address that was meant to be kept, with what became of it and why."""
