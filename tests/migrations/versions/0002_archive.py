"""The archive: snapshots, documents, changes, editions, reports"""

from alembic import op
import sqlalchemy as sa
import holdfast.db.models.base

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('documents',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('body_hash', sa.LargeBinary(length=32), nullable=False),
    sa.Column('charset', sa.String(length=32), nullable=False),
    sa.Column('media_type', sa.String(length=127), nullable=False),
    sa.Column('body_bytes', sa.BigInteger(), nullable=False),
    sa.Column('title', sa.String(), nullable=True),
    sa.Column('description', sa.String(), nullable=True),
    sa.Column('snippet', sa.String(), nullable=True),
    sa.Column('headings', sa.Text(), nullable=True),
    sa.Column('language', sa.String(length=35), nullable=True),
    sa.Column('canonical', sa.String(), nullable=True),
    sa.Column('details', holdfast.db.models.base.Json, nullable=False),
    sa.Column('noindex', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.Column('says_archived', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.Column('simhash', sa.BigInteger(), nullable=True),
    sa.Column('text_chars', sa.Integer(), server_default='0', nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_documents')),
    sa.UniqueConstraint('body_hash', 'charset', 'media_type', name=op.f('uq_documents_body_hash_charset_media_type'))
    )
    op.create_table('issue_reports',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('category', sa.String(length=32), nullable=False),
    sa.Column('description', sa.Text(), nullable=False),
    sa.Column('snapshot_id', sa.BigInteger(), nullable=True),
    sa.Column('original_url', sa.Text(), nullable=True),
    sa.Column('reporter_email', sa.String(), nullable=True),
    sa.Column('page_url', sa.Text(), nullable=True),
    sa.Column('status', sa.String(length=16), nullable=False),
    sa.Column('notes', sa.Text(), nullable=True),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('updated_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_issue_reports'))
    )
    with op.batch_alter_table('issue_reports', schema=None) as batch_op:
        batch_op.create_index('ix_issue_reports_status', ['status', 'id'], unique=False)

    op.create_table('page_links',
    sa.Column('snapshot_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('to_hash', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('from_hash', sa.BigInteger(), nullable=False),
    sa.Column('to_url', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('snapshot_id', 'to_hash', name=op.f('pk_page_links'))
    )
    with op.batch_alter_table('page_links', schema=None) as batch_op:
        batch_op.create_index('ix_page_links_to_hash', ['to_hash'], unique=False)

    op.create_table('page_signals',
    sa.Column('url_hash', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('inlinks', sa.Integer(), nullable=False),
    sa.Column('outlinks', sa.Integer(), nullable=False),
    sa.Column('pagerank', sa.Double(), nullable=False),
    sa.Column('computed_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('url_hash', name=op.f('pk_page_signals'))
    )
    op.create_table('search_outbox',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('kind', sa.String(length=16), nullable=False),
    sa.Column('first_id', sa.BigInteger(), nullable=True),
    sa.Column('last_id', sa.BigInteger(), nullable=True),
    sa.Column('refs', holdfast.db.models.base.Json, nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_search_outbox'))
    )
    op.create_table('usage_counts',
    sa.Column('day', sa.String(length=10), nullable=False),
    sa.Column('event', sa.String(length=32), nullable=False),
    sa.Column('count', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('day', 'event', name=op.f('pk_usage_counts'))
    )
    op.create_table('withdrawals',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('snapshot_id', sa.BigInteger(), nullable=True),
    sa.Column('url_hash', sa.BigInteger(), nullable=True),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('actor', sa.String(), nullable=False),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('lifted_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('lifted_by', sa.String(), nullable=True),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_withdrawals'))
    )
    with op.batch_alter_table('withdrawals', schema=None) as batch_op:
        batch_op.create_index('ix_withdrawals_snapshot', ['snapshot_id'], unique=False, sqlite_where=sa.text('lifted_at IS NULL'), postgresql_where=sa.text('lifted_at IS NULL'))
        batch_op.create_index('ix_withdrawals_url', ['url_hash'], unique=False, sqlite_where=sa.text('lifted_at IS NULL'), postgresql_where=sa.text('lifted_at IS NULL'))

    op.create_table('diffs',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('from_document_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('to_document_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('added_sections', sa.Integer(), nullable=False),
    sa.Column('removed_sections', sa.Integer(), nullable=False),
    sa.Column('changed_sections', sa.Integer(), nullable=False),
    sa.Column('added_lines', sa.Integer(), nullable=False),
    sa.Column('removed_lines', sa.Integer(), nullable=False),
    sa.Column('ratio', sa.Double(), nullable=False),
    sa.Column('high_noise', sa.Boolean(), nullable=False),
    sa.Column('truncated', sa.Boolean(), nullable=False),
    sa.Column('body', sa.LargeBinary(), nullable=True),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.ForeignKeyConstraint(['from_document_id'], ['documents.id'], name=op.f('fk_diffs_from_document_id')),
    sa.ForeignKeyConstraint(['to_document_id'], ['documents.id'], name=op.f('fk_diffs_to_document_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_diffs')),
    sa.UniqueConstraint('from_document_id', 'to_document_id', 'version', name=op.f('uq_diffs_from_document_id_to_document_id_version'))
    )
    op.create_table('document_texts',
    sa.Column('document_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('text', sa.LargeBinary(), nullable=False),
    sa.ForeignKeyConstraint(['document_id'], ['documents.id'], name=op.f('fk_document_texts_document_id')),
    sa.PrimaryKeyConstraint('document_id', name=op.f('pk_document_texts'))
    )
    op.create_table('editions',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('year', sa.SmallInteger(), nullable=False),
    sa.Column('status', sa.String(length=16), nullable=False),
    sa.Column('search_ready', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.Column('research_ready', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.Column('intended_url_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('captured_url_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('failed_url_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('missing_url_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('excluded_url_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('fallback_url_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('shard_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('indexed_shard_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('needs_review_shard_count', sa.Integer(), server_default='0', nullable=False),
    sa.Column('backend_counts', holdfast.db.models.base.Json, nullable=False),
    sa.Column('coverage_summary', holdfast.db.models.base.Json, nullable=False),
    sa.Column('target_ledger_path', sa.String(), nullable=True),
    sa.Column('capture_manifest_path', sa.String(), nullable=True),
    sa.Column('coverage_report_json_path', sa.String(), nullable=True),
    sa.Column('coverage_report_md_path', sa.String(), nullable=True),
    sa.Column('generated_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('created_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_editions_source_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_editions')),
    sa.UniqueConstraint('source_id', 'year', name=op.f('uq_editions_source_id_year'))
    )
    op.create_table('page_groups',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('url_hash', sa.BigInteger(), nullable=False),
    sa.Column('first_captured_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('last_captured_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('snapshot_count', sa.Integer(), nullable=False),
    sa.Column('latest_id', sa.BigInteger(), nullable=False),
    sa.Column('latest_ok_id', sa.BigInteger(), nullable=True),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_page_groups_source_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_page_groups')),
    sa.UniqueConstraint('source_id', 'url_hash', name=op.f('uq_page_groups_source_id_url_hash'))
    )
    with op.batch_alter_table('page_groups', schema=None) as batch_op:
        batch_op.create_index('ix_page_groups_last', ['last_captured_at', 'id'], unique=False)
        batch_op.create_index('ix_page_groups_source_last', ['source_id', 'last_captured_at', 'id'], unique=False)
        batch_op.create_index('ix_page_groups_url_hash', ['url_hash'], unique=False)

    op.create_table('changes',
    sa.Column('id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('group_id', sa.BigInteger(), nullable=True),
    sa.Column('url_hash', sa.BigInteger(), nullable=False),
    sa.Column('from_snapshot_id', sa.BigInteger(), nullable=True),
    sa.Column('to_snapshot_id', sa.BigInteger(), nullable=False),
    sa.Column('from_execution_id', sa.BigInteger(), nullable=True),
    sa.Column('to_execution_id', sa.BigInteger(), nullable=False),
    sa.Column('from_captured_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('to_captured_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('type', sa.String(length=16), nullable=False),
    sa.Column('diff_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('computed_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.ForeignKeyConstraint(['diff_id'], ['diffs.id'], name=op.f('fk_changes_diff_id')),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_changes_source_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_changes')),
    sa.UniqueConstraint('to_snapshot_id', name=op.f('uq_changes_to_snapshot_id'))
    )
    with op.batch_alter_table('changes', schema=None) as batch_op:
        batch_op.create_index('ix_changes_execution', ['to_execution_id', 'id'], unique=False)
        batch_op.create_index('ix_changes_execution_told', ['to_execution_id', 'id'], unique=False, sqlite_where=sa.text("type <> 'unchanged'"), postgresql_where=sa.text("type <> 'unchanged'"))
        batch_op.create_index('ix_changes_source_told', ['source_id', 'to_captured_at', 'id'], unique=False, sqlite_where=sa.text("type <> 'unchanged'"), postgresql_where=sa.text("type <> 'unchanged'"))
        batch_op.create_index('ix_changes_moment', ['to_captured_at', 'id'], unique=False)
        batch_op.create_index('ix_changes_page', ['url_hash', 'to_captured_at'], unique=False)
        batch_op.create_index('ix_changes_source', ['source_id', 'to_captured_at', 'id'], unique=False)

    op.create_table('index_runs',
    sa.Column('warc_file_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('owner_id', sa.BigInteger(), nullable=True),
    sa.Column('token', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('lease_expires_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('phase', sa.String(length=16), nullable=False),
    sa.Column('records', sa.Integer(), server_default='0', nullable=False),
    sa.Column('pages', sa.Integer(), server_default='0', nullable=False),
    sa.Column('bytes_done', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('bytes_total', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('warnings', holdfast.db.models.base.Json, nullable=False),
    sa.Column('error', sa.String(), nullable=True),
    sa.Column('started_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('progress_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('finished_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.ForeignKeyConstraint(['warc_file_id'], ['warc_files.id'], name=op.f('fk_index_runs_warc_file_id')),
    sa.PrimaryKeyConstraint('warc_file_id', name=op.f('pk_index_runs'))
    )
    op.create_table('snapshots',
    sa.Column('id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('warc_file_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('execution_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('source_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=False),
    sa.Column('warc_offset', sa.BigInteger(), nullable=False),
    sa.Column('warc_length', sa.BigInteger(), nullable=False),
    sa.Column('record_id', sa.String(), nullable=True),
    sa.Column('record_type', sa.String(length=8), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('url_key', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('url_hash', sa.BigInteger(), nullable=False),
    sa.Column('group_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('captured_at', holdfast.db.models.base.Moment(), nullable=False),
    sa.Column('method', sa.String(length=16), nullable=True),
    sa.Column('status', sa.SmallInteger(), nullable=True),
    sa.Column('media_type', sa.String(), nullable=True),
    sa.Column('payload_digest', sa.String(), nullable=True),
    sa.Column('body_hash', sa.LargeBinary(length=32), nullable=True),
    sa.Column('document_id', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), nullable=True),
    sa.Column('is_page', sa.Boolean(), nullable=False),
    sa.Column('noindex', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.Column('canonical_id', sa.BigInteger(), nullable=True),
    sa.Column('original_id', sa.BigInteger(), nullable=True),
    sa.Column('refers_to_url', sa.Text(), nullable=True),
    sa.Column('refers_to_at', holdfast.db.models.base.Moment(), nullable=True),
    sa.Column('redirect_to', sa.Text(), nullable=True),
    sa.Column('truncated', sa.String(length=16), nullable=True),
    sa.Column('problems', sa.String(), nullable=True),
    sa.Column('backend', sa.String(length=16), server_default=sa.text("'native'"), nullable=False),
    sa.Column('fidelity', sa.String(length=8), server_default=sa.text("'unknown'"), nullable=False),
    sa.Column('compared', sa.Boolean(), server_default=sa.text('(false)'), nullable=False),
    sa.ForeignKeyConstraint(['document_id'], ['documents.id'], name=op.f('fk_snapshots_document_id')),
    sa.ForeignKeyConstraint(['execution_id'], ['executions.id'], name=op.f('fk_snapshots_execution_id')),
    sa.ForeignKeyConstraint(['group_id'], ['page_groups.id'], name=op.f('fk_snapshots_group_id')),
    sa.ForeignKeyConstraint(['source_id'], ['sources.id'], name=op.f('fk_snapshots_source_id')),
    sa.ForeignKeyConstraint(['warc_file_id'], ['warc_files.id'], name=op.f('fk_snapshots_warc_file_id')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_snapshots'))
    )
    with op.batch_alter_table('snapshots', schema=None) as batch_op:
        batch_op.create_index('ix_snapshots_document', ['document_id', 'id'], unique=False)
        batch_op.create_index('ix_snapshots_execution', ['execution_id', 'id'], unique=False)
        batch_op.create_index('ix_snapshots_group', ['group_id', 'captured_at', 'id'], unique=False)
        batch_op.create_index('ix_snapshots_key', ['url_key', 'captured_at', 'id'], unique=False)
        batch_op.create_index('ix_snapshots_page', ['url_hash', 'captured_at', 'id'], unique=False)
        batch_op.create_index('ix_snapshots_source', ['source_id', 'id'], unique=False)
        batch_op.create_index('ix_snapshots_to_compare', ['source_id', 'id'], unique=False, sqlite_where=sa.text('is_page AND NOT compared'), postgresql_where=sa.text('is_page AND NOT compared'))
        batch_op.create_index('ix_snapshots_unresolved', ['id'], unique=False, sqlite_where=sa.text("record_type = 'revisit' AND original_id IS NULL"), postgresql_where=sa.text("record_type = 'revisit' AND original_id IS NULL"))

    with op.batch_alter_table('warc_files', schema=None) as batch_op:
        batch_op.add_column(sa.Column('origin', sa.String(), nullable=True))
        batch_op.add_column(sa.Column('origin_sha256', sa.String(length=64), nullable=True))
        batch_op.add_column(sa.Column('index_state', sa.String(length=8), server_default=sa.text("'pending'"), nullable=False))
        batch_op.create_index('ix_warc_files_origin_sha256', ['origin_sha256'], unique=False)
        batch_op.create_index('ix_warc_files_to_index', ['id'], unique=False, sqlite_where=sa.text("state = 'sealed' AND index_state IN ('pending','running')"), postgresql_where=sa.text("state = 'sealed' AND index_state IN ('pending','running')"))
