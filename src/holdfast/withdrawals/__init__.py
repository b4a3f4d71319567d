"""What was taken out of sight: hidden and shown again, and the one predicate by which every reader leaves it out."""
