"""The frontier: what to ask for next, who may ask it, and what came of it; politeness and circuit as pure functions."""

from holdfast.frontier.frontier import Frontier, FrontierSettings
from holdfast.frontier.queries import Account, FrontierStats, OpenAttempt, Summary
from holdfast.frontier.settling import KnownSignals, Settled

__all__ = [
    "Account",
    "Frontier",
    "FrontierSettings",
    "FrontierStats",
    "KnownSignals",
    "OpenAttempt",
    "Settled",
    "Summary",
]
