"""`holdfast serve`: the parts of one installation as child processes under one supervisor."""
