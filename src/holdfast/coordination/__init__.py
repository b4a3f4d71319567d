"""Lease owners with their file locks and heartbeats. Uses SQL only; Redis may be added in front later."""
