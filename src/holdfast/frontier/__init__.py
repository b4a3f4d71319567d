"""The frontier: what to ask for next, who may ask it, and what came of it; politeness and circuit as pure functions."""

from holdfast.frontier.frontier import Frontier
from holdfast.frontier.values import (
    Account,
    FrontierSettings,
    FrontierStats,
    KnownSignals,
    OpenAttempt,
    Settled,
    Summary,
)

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
