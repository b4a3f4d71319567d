"""The errors of this room."""

from __future__ import annotations

from holdfast.errors import Conflict, Invalid, NotFound, Unavailable


class EditionNotFound(NotFound):
    """There is no edition of this source and year."""

    code = "edition_not_found"


class ShardNotFound(NotFound):
    """This job is no part of an edition."""

    code = "shard_not_found"

    def __init__(self, job_id: int) -> None:
        super().__init__(f"job {job_id} is no part of an edition; see them with: holdfast edition show")


class ArtefactNotFound(NotFound):
    """This file of an edition has not been written, or is not for the public."""

    code = "artefact_not_found"


class CampaignRefused(Invalid):
    """An annual campaign cannot be planned like this."""

    code = "campaign_refused"


class LedgerUnbalanced(Conflict):
    """The rows of a ledger do not add up to its counts: no report is written from it."""

    code = "ledger_unbalanced"


class EditionNotReady(Conflict):
    """The edition is not far enough for this."""

    code = "edition_not_ready"


class EditionFrozen(Conflict):
    """The edition was frozen before: its list is cited."""

    code = "edition_frozen"


class CopyBusy(Unavailable):
    """The public copy of a file is being made."""

    code = "copy_busy"


class FrozenListDamaged(Conflict):
    """The frozen list is not the one that was cited."""

    code = "frozen_list_damaged"


class EditionBusy(Conflict):
    """Somebody else writes the files of this edition at this moment."""

    code = "edition_busy"
