"""Jobs as parts of an annual edition: which there are, how they stand, and what people decided about them."""
