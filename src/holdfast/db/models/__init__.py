"""Every table, by area. Importing this fills the metadata that migrations compare with."""

from holdfast.db.models.archive import WarcFile
from holdfast.db.models.base import Model
from holdfast.db.models.frontier import Domain, Exclusion, ExecutionCount, Page, PageCrawl, Queue, Robots
from holdfast.db.models.work import AuditEvent, Execution, Job, Owner, Source

__all__ = [
    "AuditEvent",
    "Domain",
    "Exclusion",
    "Execution",
    "ExecutionCount",
    "Job",
    "Model",
    "Owner",
    "Page",
    "PageCrawl",
    "Queue",
    "Robots",
    "Source",
    "WarcFile",
]
