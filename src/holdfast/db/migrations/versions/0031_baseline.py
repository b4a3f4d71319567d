"""The baseline: every table of the models, and the data of all older schemas"""

from holdfast.db.migrations.baseline import BASELINE
from holdfast.errors import Conflict

revision = BASELINE
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: `holdfast.db.migrate` runs `baseline.bring_up`, which has the old schema's version."""


def downgrade() -> None:
    raise Conflict(f"cannot go back below schema {BASELINE}; restore a backup that the older program made")
