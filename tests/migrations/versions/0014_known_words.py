"""Word count and kind of page are empty where they were not read; the words of links are found by who said them"""

from typing import Any

from alembic import op
import sqlalchemy as sa

revision = '0014'
down_revision = '0013'
branch_labels = None
depends_on = None

# The extraction that reads both of a document.
SINCE = 3
COLUMNS: dict[str, tuple[sa.types.TypeEngine[Any], sa.TextClause]] = {
    'word_count': (sa.Integer(), sa.text("'0'")),
    'page_type': (sa.String(length=16), sa.text("'other'")),
}


def upgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == 'sqlite'
    for name, (kind, _) in COLUMNS.items():
        if is_sqlite:
            # SQLite changes no column: a new one takes its place.
            op.add_column('documents', sa.Column(f'{name}_read', kind, nullable=True))
            op.execute(f'UPDATE documents SET {name}_read = {name} WHERE version >= {SINCE}')
            op.drop_column('documents', name)
            op.execute(f'ALTER TABLE documents RENAME COLUMN {name}_read TO {name}')
        else:
            op.alter_column('documents', name, existing_type=kind, nullable=True, server_default=None)
    if not is_sqlite:
        op.execute(f'UPDATE documents SET word_count = NULL, page_type = NULL WHERE version < {SINCE}')
    op.drop_column('documents', 'simhash')
    # Words of captures that are not there any more: from now on they go with them.
    op.execute('DELETE FROM link_texts WHERE NOT EXISTS (SELECT 1 FROM snapshots s WHERE s.id = link_texts.snapshot_id)')
    op.create_index('ix_link_texts_snapshot', 'link_texts', ['snapshot_id'], unique=False)
    _good_captures('AND s.noise IS NULL ')


def _good_captures(more: str) -> None:
    """Find the newest good captures anew of the pages that have noise among their captures."""
    op.execute(
        'UPDATE page_groups SET latest_ok_id = (SELECT s.id FROM snapshots s WHERE s.group_id = page_groups.id'
        f" AND (s.status BETWEEN 200 AND 299 OR (s.status = 304 AND s.record_type = 'revisit')) {more}"
        'ORDER BY s.captured_at DESC, s.id DESC LIMIT 1)'
        ' WHERE id IN (SELECT n.group_id FROM snapshots n WHERE n.noise IS NOT NULL AND n.group_id IS NOT NULL)'
    )
