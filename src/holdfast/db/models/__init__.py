"""Every table, by area. Importing this fills the metadata that migrations compare with."""

from holdfast.db.models.archive import WarcFile
from holdfast.db.models.base import Model
from holdfast.db.models.captures import (
    Document,
    DocumentText,
    IndexRun,
    PageGroup,
    PageLink,
    PageSignal,
    SearchOutbox,
    Snapshot,
    Withdrawal,
)
from holdfast.db.models.discovery import Feed, FeedItem, SignalLink, SignalPage, SignalWord
from holdfast.db.models.findings import Change, Diff, Edition, IssueReport, UsageCount
from holdfast.db.models.frontier import Domain, Exclusion, ExecutionCount, Page, PageCrawl, Queue, Reread, Robots
from holdfast.db.models.work import (
    AuditEvent,
    Execution,
    Hold,
    Job,
    JobEvent,
    LogLine,
    Owner,
    Recovery,
    RunHour,
    Source,
)

__all__ = [
    "AuditEvent",
    "Change",
    "Diff",
    "Document",
    "DocumentText",
    "Domain",
    "Edition",
    "Exclusion",
    "Execution",
    "ExecutionCount",
    "Feed",
    "FeedItem",
    "Hold",
    "IndexRun",
    "IssueReport",
    "Job",
    "JobEvent",
    "LogLine",
    "Model",
    "Owner",
    "Page",
    "PageCrawl",
    "PageGroup",
    "PageLink",
    "PageSignal",
    "Queue",
    "Recovery",
    "Reread",
    "Robots",
    "RunHour",
    "SearchOutbox",
    "SignalLink",
    "SignalPage",
    "SignalWord",
    "Snapshot",
    "Source",
    "UsageCount",
    "WarcFile",
    "Withdrawal",
]
