"""A capture is a duplicate of a capture of its own source only; rows that name one of another source are corrected"""

from alembic import op
import sqlalchemy as sa
from holdfast.clock import SystemClock, to_micros

revision = '0028'
down_revision = '0022'
branch_labels = None
depends_on = None

# Captures of one source that name the same capture of another source share address, day and body: the earliest of
# them becomes canonical. Changes and search read these rows again.
WRONG = """
    SELECT s.id, FIRST_VALUE(s.id) OVER (PARTITION BY s.source_id, s.canonical_id ORDER BY s.captured_at, s.id) AS first_id
    FROM snapshots s JOIN snapshots c ON c.id = s.canonical_id WHERE c.source_id <> s.source_id
"""


def upgrade() -> None:
    op.execute(sa.text(
        "INSERT INTO search_outbox(kind, first_id, last_id, refs, created_at)"
        f" SELECT 'snapshots', MIN(w.id), MAX(w.id), '{{}}', {to_micros(SystemClock().now())} FROM ({WRONG}) AS w GROUP BY w.id / 256"
    ))
    op.execute(sa.text(
        "UPDATE snapshots SET canonical_id = NULLIF(w.first_id, w.id), compared = (1 = 0)"
        f" FROM ({WRONG}) AS w WHERE snapshots.id = w.id"
    ))
