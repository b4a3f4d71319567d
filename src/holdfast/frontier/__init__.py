"""The frontier: which URL to request next, by which process, and the results; politeness and circuit breakers as
pure functions. Crawls use `Frontier` with plain SQL; the lists, figures and actions of operators use SQLAlchemy too.
"""

from holdfast.frontier.frontier import Frontier, FrontierSettings, KnownSignals
from holdfast.frontier.queries import Account, Summary
from holdfast.frontier.settling import Settled

__all__ = [
    "Account",
    "Frontier",
    "FrontierSettings",
    "KnownSignals",
    "Settled",
    "Summary",
]
