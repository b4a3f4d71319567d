"""The board of jobs: what people do to them."""
