"""The house rules, read from the source itself: floors, budgets, forbidden calls, docs that keep up with the code."""
