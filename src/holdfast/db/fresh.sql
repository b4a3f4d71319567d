CREATE TABLE alert_turns (
	id SMALLINT NOT NULL, 
	looked_at BIGINT NOT NULL, 
	CONSTRAINT pk_alert_turns PRIMARY KEY (id)
);
CREATE TABLE alerts (
	id INTEGER NOT NULL, 
	name VARCHAR(32) NOT NULL, 
	severity VARCHAR(8) NOT NULL, 
	since BIGINT NOT NULL, 
	last_seen_at BIGINT NOT NULL, 
	resolved_at BIGINT, 
	value DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	CONSTRAINT pk_alerts PRIMARY KEY (id)
);
CREATE TABLE audit_events (
	id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	actor VARCHAR NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	subject VARCHAR NOT NULL, 
	detail JSON NOT NULL, 
	CONSTRAINT pk_audit_events PRIMARY KEY (id)
);
CREATE TABLE cleanup_counts (
	name VARCHAR(32) NOT NULL, 
	removed BIGINT DEFAULT '0' NOT NULL, 
	last_at BIGINT NOT NULL, 
	CONSTRAINT pk_cleanup_counts PRIMARY KEY (name)
);
CREATE TABLE clock_anchors (
	boot_id VARCHAR(36) NOT NULL, 
	micros BIGINT NOT NULL, 
	CONSTRAINT pk_clock_anchors PRIMARY KEY (boot_id)
);
CREATE TABLE documents (
	id INTEGER NOT NULL, 
	body_hash BLOB NOT NULL, 
	charset VARCHAR(32) NOT NULL, 
	media_type VARCHAR(127) NOT NULL, 
	body_bytes BIGINT NOT NULL, 
	title VARCHAR, 
	description VARCHAR, 
	snippet VARCHAR, 
	headings TEXT, 
	terms TEXT, 
	author VARCHAR, 
	published_at BIGINT, 
	modified_at BIGINT, 
	keywords TEXT, 
	word_count INTEGER, 
	page_type VARCHAR(16), 
	language VARCHAR(35), 
	canonical VARCHAR, 
	details JSON NOT NULL, 
	noindex BOOLEAN DEFAULT false NOT NULL, 
	says_archived BOOLEAN DEFAULT false NOT NULL, 
	text_chars INTEGER DEFAULT '0' NOT NULL, 
	version INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_documents PRIMARY KEY (id), 
	CONSTRAINT uq_documents_body_hash_charset_media_type UNIQUE (body_hash, charset, media_type)
);
CREATE TABLE domains (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	delay_s DOUBLE, 
	next_allowed_at BIGINT DEFAULT '0' NOT NULL, 
	lease_owner BIGINT, 
	lease_token BIGINT DEFAULT '0' NOT NULL, 
	lease_expires_at BIGINT DEFAULT '0' NOT NULL, 
	circuit_state VARCHAR(9) DEFAULT 'closed' NOT NULL, 
	circuit_failures INTEGER DEFAULT '0' NOT NULL, 
	circuit_successes INTEGER DEFAULT '0' NOT NULL, 
	circuit_opened_at BIGINT, 
	penalty DOUBLE DEFAULT '1' NOT NULL, 
	unreachable_since BIGINT, 
	is_allowed BOOLEAN DEFAULT true NOT NULL, 
	created_at BIGINT NOT NULL, 
	paused_at BIGINT, 
	robots_after BIGINT, 
	changed_at BIGINT, 
	CONSTRAINT pk_domains PRIMARY KEY (id), 
	CONSTRAINT uq_domains_name UNIQUE (name)
);
CREATE TABLE events (
	id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	name VARCHAR(32) NOT NULL, 
	source_id BIGINT, 
	data JSON NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (id)
);
CREATE TABLE exclusions (
	execution_id BIGINT NOT NULL, 
	rule VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	count BIGINT NOT NULL, 
	CONSTRAINT pk_exclusions PRIMARY KEY (execution_id, rule, host)
);
CREATE TABLE execution_counts (
	execution_id BIGINT NOT NULL, 
	owner_id BIGINT NOT NULL, 
	counts JSON NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_execution_counts PRIMARY KEY (execution_id, owner_id)
);
CREATE TABLE feed_items (
	id INTEGER NOT NULL, 
	source_id BIGINT NOT NULL, 
	feed_id BIGINT NOT NULL, 
	url_hash BIGINT NOT NULL, 
	url TEXT NOT NULL, 
	told_at BIGINT, 
	found_at BIGINT NOT NULL, 
	execution_id BIGINT, 
	CONSTRAINT pk_feed_items PRIMARY KEY (id), 
	CONSTRAINT uq_feed_items_source_id_url_hash UNIQUE (source_id, url_hash)
);
CREATE TABLE holds (
	id INTEGER NOT NULL, 
	job_id BIGINT NOT NULL, 
	execution_id BIGINT NOT NULL, 
	epoch BIGINT NOT NULL, 
	owner VARCHAR NOT NULL, 
	acquired_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	ending VARCHAR(10), 
	CONSTRAINT pk_holds PRIMARY KEY (id), 
	CONSTRAINT uq_holds_job_id_epoch UNIQUE (job_id, epoch)
);
CREATE TABLE installation (
	name VARCHAR(32) NOT NULL, 
	value TEXT NOT NULL, 
	CONSTRAINT pk_installation PRIMARY KEY (name)
);
CREATE TABLE issue_reports (
	id INTEGER NOT NULL, 
	category VARCHAR(32) NOT NULL, 
	description TEXT NOT NULL, 
	snapshot_id BIGINT, 
	original_url TEXT, 
	reporter_email VARCHAR, 
	page_url TEXT, 
	status VARCHAR(16) NOT NULL, 
	notes TEXT, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_issue_reports PRIMARY KEY (id)
);
CREATE TABLE job_events (
	id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	name VARCHAR(16) NOT NULL, 
	job_id BIGINT NOT NULL, 
	execution_id BIGINT, 
	data JSON NOT NULL, 
	CONSTRAINT pk_job_events PRIMARY KEY (id)
);
CREATE TABLE link_texts (
	to_hash BIGINT NOT NULL, 
	host_hash BIGINT NOT NULL, 
	text VARCHAR(80) NOT NULL, 
	snapshot_id BIGINT NOT NULL, 
	CONSTRAINT pk_link_texts PRIMARY KEY (to_hash, host_hash, text)
)
 WITHOUT ROWID

;
CREATE TABLE linked_host_files (
	warc_file_id BIGINT NOT NULL, 
	read_at BIGINT NOT NULL, 
	hidden BIGINT DEFAULT '0' NOT NULL, 
	counted BLOB NOT NULL, 
	CONSTRAINT pk_linked_host_files PRIMARY KEY (warc_file_id)
);
CREATE TABLE linked_host_votes (
	"key" TEXT NOT NULL, 
	site TEXT NOT NULL, 
	links BIGINT NOT NULL, 
	CONSTRAINT pk_linked_host_votes PRIMARY KEY ("key", site)
);
CREATE TABLE linked_hosts (
	"key" TEXT NOT NULL, 
	links BIGINT NOT NULL, 
	sites INTEGER NOT NULL, 
	CONSTRAINT pk_linked_hosts PRIMARY KEY ("key")
);
CREATE TABLE log_lines (
	id INTEGER NOT NULL, 
	execution_id BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	level SMALLINT NOT NULL, 
	category VARCHAR(32) NOT NULL, 
	message TEXT NOT NULL, 
	fields JSON NOT NULL, 
	CONSTRAINT pk_log_lines PRIMARY KEY (id)
);
CREATE TABLE noise_queue (
	id INTEGER NOT NULL, 
	first_id BIGINT NOT NULL, 
	last_id BIGINT NOT NULL, 
	late BOOLEAN DEFAULT false NOT NULL, 
	CONSTRAINT pk_noise_queue PRIMARY KEY (id)
);
CREATE TABLE noise_rulings (
	id INTEGER NOT NULL, 
	snapshot_id BIGINT, 
	url_key TEXT, 
	subject TEXT NOT NULL, 
	kind VARCHAR(16), 
	reason TEXT NOT NULL, 
	actor VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_noise_rulings PRIMARY KEY (id)
);
CREATE TABLE noise_suspects (
	snapshot_id BIGINT NOT NULL, 
	site BIGINT NOT NULL, 
	likeness BIGINT NOT NULL, 
	leaf BIGINT NOT NULL, 
	url_hash BIGINT NOT NULL, 
	kind VARCHAR(16), 
	said TEXT NOT NULL, 
	proof TEXT, 
	least SMALLINT NOT NULL, 
	chars INTEGER NOT NULL, 
	marked BOOLEAN DEFAULT false NOT NULL, 
	CONSTRAINT pk_noise_suspects PRIMARY KEY (snapshot_id)
);
CREATE TABLE noise_verdicts (
	snapshot_id BIGINT NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	evidence TEXT NOT NULL, 
	decided_by VARCHAR, 
	decided_at BIGINT NOT NULL, 
	CONSTRAINT pk_noise_verdicts PRIMARY KEY (snapshot_id)
);
CREATE TABLE page_crawls (
	id INTEGER NOT NULL, 
	execution_id BIGINT NOT NULL, 
	domain_id BIGINT NOT NULL, 
	page_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	kind VARCHAR(9) NOT NULL, 
	priority SMALLINT NOT NULL, 
	depth INTEGER NOT NULL, 
	hops SMALLINT DEFAULT '0' NOT NULL, 
	generation SMALLINT DEFAULT '0' NOT NULL, 
	via_page_id BIGINT, 
	scheduled_for BIGINT, 
	crashes SMALLINT DEFAULT '0' NOT NULL, 
	outcome VARCHAR(14), 
	reason VARCHAR, 
	status_code SMALLINT, 
	message VARCHAR, 
	media_type VARCHAR, 
	wire_bytes BIGINT, 
	requests INTEGER, 
	payload_digest VARCHAR, 
	content_hash VARCHAR, 
	title VARCHAR, 
	redirected_to VARCHAR, 
	links_count INTEGER, 
	warc_file_id BIGINT, 
	warc_offset BIGINT, 
	warc_length BIGINT, 
	warc_ordinal INTEGER, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	completed_at BIGINT, 
	CONSTRAINT pk_page_crawls PRIMARY KEY (id), 
	CONSTRAINT uq_page_crawls_execution_id_domain_id_page_id_attempt UNIQUE (execution_id, domain_id, page_id, attempt)
);
CREATE TABLE page_links (
	snapshot_id BIGINT NOT NULL, 
	to_hash BIGINT NOT NULL, 
	from_hash BIGINT NOT NULL, 
	to_url TEXT NOT NULL, 
	CONSTRAINT pk_page_links PRIMARY KEY (snapshot_id, to_hash)
);
CREATE TABLE page_signals (
	url_hash BIGINT NOT NULL, 
	inlinks INTEGER NOT NULL, 
	outlinks INTEGER NOT NULL, 
	pagerank DOUBLE NOT NULL, 
	computed_at BIGINT NOT NULL, 
	CONSTRAINT pk_page_signals PRIMARY KEY (url_hash)
);
CREATE TABLE pages (
	id INTEGER NOT NULL, 
	domain_id BIGINT NOT NULL, 
	url_hash BIGINT NOT NULL, 
	url VARCHAR NOT NULL, 
	status VARCHAR(10) DEFAULT 'discovered' NOT NULL, 
	language VARCHAR(35), 
	etag VARCHAR, 
	last_modified VARCHAR, 
	original_record_id VARCHAR, 
	original_url VARCHAR, 
	original_at BIGINT, 
	original_digest VARCHAR, 
	original_file_id BIGINT, 
	original_offset BIGINT, 
	error_count SMALLINT DEFAULT '0' NOT NULL, 
	created_at BIGINT NOT NULL, 
	fetched_at BIGINT, 
	failed_at BIGINT, 
	next_crawl_at BIGINT, 
	CONSTRAINT pk_pages PRIMARY KEY (id), 
	CONSTRAINT uq_pages_domain_id_url_hash UNIQUE (domain_id, url_hash)
);
CREATE TABLE queues (
	execution_id BIGINT NOT NULL, 
	domain_id BIGINT NOT NULL, 
	open BIGINT NOT NULL, 
	succeeded BIGINT DEFAULT '0' NOT NULL, 
	failed BIGINT DEFAULT '0' NOT NULL, 
	ruled_out BIGINT DEFAULT '0' NOT NULL, 
	due_at BIGINT NOT NULL, 
	CONSTRAINT pk_queues PRIMARY KEY (execution_id, domain_id)
);
CREATE TABLE recoveries (
	id INTEGER NOT NULL, 
	job_id BIGINT NOT NULL, 
	execution_id BIGINT, 
	at BIGINT NOT NULL, 
	action VARCHAR(24) NOT NULL, 
	reason VARCHAR, 
	pages BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_recoveries PRIMARY KEY (id)
);
CREATE TABLE replay_keys (
	id INTEGER NOT NULL, 
	secret BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_replay_keys PRIMARY KEY (id)
);
CREATE TABLE rereads (
	execution_id BIGINT NOT NULL, 
	page_id BIGINT NOT NULL, 
	domain_id BIGINT NOT NULL, 
	depth INTEGER NOT NULL, 
	CONSTRAINT pk_rereads PRIMARY KEY (execution_id, page_id)
);
CREATE TABLE run_hours (
	hour BIGINT NOT NULL, 
	succeeded INTEGER DEFAULT '0' NOT NULL, 
	failed INTEGER DEFAULT '0' NOT NULL, 
	cancelled INTEGER DEFAULT '0' NOT NULL, 
	duration_ms BIGINT DEFAULT '0' NOT NULL, 
	stale_locks INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_run_hours PRIMARY KEY (hour)
);
CREATE TABLE search_outbox (
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	first_id BIGINT, 
	last_id BIGINT, 
	refs JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_search_outbox PRIMARY KEY (id)
);
CREATE TABLE series (
	execution_id BIGINT NOT NULL, 
	step_s INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	domains_waiting BIGINT DEFAULT '0' NOT NULL, 
	pages BIGINT DEFAULT '0' NOT NULL, 
	requests BIGINT DEFAULT '0' NOT NULL, 
	bytes BIGINT DEFAULT '0' NOT NULL, 
	links BIGINT DEFAULT '0' NOT NULL, 
	unchanged BIGINT DEFAULT '0' NOT NULL, 
	retries BIGINT DEFAULT '0' NOT NULL, 
	success BIGINT DEFAULT '0' NOT NULL, 
	failed BIGINT DEFAULT '0' NOT NULL, 
	timeout BIGINT DEFAULT '0' NOT NULL, 
	blocked_robots BIGINT DEFAULT '0' NOT NULL, 
	blocked_4xx BIGINT DEFAULT '0' NOT NULL, 
	blocked_5xx BIGINT DEFAULT '0' NOT NULL, 
	excluded BIGINT DEFAULT '0' NOT NULL, 
	status_2xx BIGINT DEFAULT '0' NOT NULL, 
	status_3xx BIGINT DEFAULT '0' NOT NULL, 
	status_4xx BIGINT DEFAULT '0' NOT NULL, 
	status_5xx BIGINT DEFAULT '0' NOT NULL, 
	status_other BIGINT DEFAULT '0' NOT NULL, 
	latency_50ms BIGINT DEFAULT '0' NOT NULL, 
	latency_100ms BIGINT DEFAULT '0' NOT NULL, 
	latency_250ms BIGINT DEFAULT '0' NOT NULL, 
	latency_500ms BIGINT DEFAULT '0' NOT NULL, 
	latency_1s BIGINT DEFAULT '0' NOT NULL, 
	latency_2500ms BIGINT DEFAULT '0' NOT NULL, 
	latency_5s BIGINT DEFAULT '0' NOT NULL, 
	latency_10s BIGINT DEFAULT '0' NOT NULL, 
	latency_30s BIGINT DEFAULT '0' NOT NULL, 
	latency_longer BIGINT DEFAULT '0' NOT NULL, 
	latency_ms BIGINT DEFAULT '0' NOT NULL, 
	circuits_opened BIGINT DEFAULT '0' NOT NULL, 
	circuits_closed BIGINT DEFAULT '0' NOT NULL, 
	imported_records BIGINT DEFAULT '0' NOT NULL, 
	imported_bytes BIGINT DEFAULT '0' NOT NULL, 
	queue BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_series PRIMARY KEY (execution_id, step_s, at)
);
CREATE TABLE series_totals (
	source_id BIGINT NOT NULL, 
	pages BIGINT DEFAULT '0' NOT NULL, 
	requests BIGINT DEFAULT '0' NOT NULL, 
	bytes BIGINT DEFAULT '0' NOT NULL, 
	links BIGINT DEFAULT '0' NOT NULL, 
	unchanged BIGINT DEFAULT '0' NOT NULL, 
	retries BIGINT DEFAULT '0' NOT NULL, 
	success BIGINT DEFAULT '0' NOT NULL, 
	failed BIGINT DEFAULT '0' NOT NULL, 
	timeout BIGINT DEFAULT '0' NOT NULL, 
	blocked_robots BIGINT DEFAULT '0' NOT NULL, 
	blocked_4xx BIGINT DEFAULT '0' NOT NULL, 
	blocked_5xx BIGINT DEFAULT '0' NOT NULL, 
	excluded BIGINT DEFAULT '0' NOT NULL, 
	status_2xx BIGINT DEFAULT '0' NOT NULL, 
	status_3xx BIGINT DEFAULT '0' NOT NULL, 
	status_4xx BIGINT DEFAULT '0' NOT NULL, 
	status_5xx BIGINT DEFAULT '0' NOT NULL, 
	status_other BIGINT DEFAULT '0' NOT NULL, 
	latency_50ms BIGINT DEFAULT '0' NOT NULL, 
	latency_100ms BIGINT DEFAULT '0' NOT NULL, 
	latency_250ms BIGINT DEFAULT '0' NOT NULL, 
	latency_500ms BIGINT DEFAULT '0' NOT NULL, 
	latency_1s BIGINT DEFAULT '0' NOT NULL, 
	latency_2500ms BIGINT DEFAULT '0' NOT NULL, 
	latency_5s BIGINT DEFAULT '0' NOT NULL, 
	latency_10s BIGINT DEFAULT '0' NOT NULL, 
	latency_30s BIGINT DEFAULT '0' NOT NULL, 
	latency_longer BIGINT DEFAULT '0' NOT NULL, 
	latency_ms BIGINT DEFAULT '0' NOT NULL, 
	circuits_opened BIGINT DEFAULT '0' NOT NULL, 
	circuits_closed BIGINT DEFAULT '0' NOT NULL, 
	imported_records BIGINT DEFAULT '0' NOT NULL, 
	imported_bytes BIGINT DEFAULT '0' NOT NULL, 
	queue BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_series_totals PRIMARY KEY (source_id)
);
CREATE TABLE sign_in_failures (
	"key" VARCHAR(80) NOT NULL, 
	failures INTEGER NOT NULL, 
	since BIGINT NOT NULL, 
	CONSTRAINT pk_sign_in_failures PRIMARY KEY ("key")
);
CREATE TABLE signal_links (
	page_id BIGINT NOT NULL, 
	to_hash BIGINT NOT NULL, 
	from_hash BIGINT NOT NULL, 
	to_url TEXT NOT NULL, 
	CONSTRAINT pk_signal_links PRIMARY KEY (page_id, to_hash)
);
CREATE TABLE signal_pages (
	page_id BIGINT NOT NULL, 
	source_id BIGINT NOT NULL, 
	execution_id BIGINT NOT NULL, 
	fetched_at BIGINT NOT NULL, 
	status_code SMALLINT, 
	media_type VARCHAR, 
	content_hash VARCHAR(71), 
	language VARCHAR(35), 
	title VARCHAR, 
	description TEXT, 
	word_count INTEGER DEFAULT '0' NOT NULL, 
	links_count INTEGER DEFAULT '0' NOT NULL, 
	page_key TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_signal_pages PRIMARY KEY (page_id)
);
CREATE TABLE signal_words (
	word VARCHAR(64) NOT NULL, 
	page_id BIGINT NOT NULL, 
	count SMALLINT NOT NULL, 
	CONSTRAINT pk_signal_words PRIMARY KEY (word, page_id)
);
CREATE TABLE sources (
	id INTEGER NOT NULL, 
	code VARCHAR(16) NOT NULL, 
	name VARCHAR NOT NULL, 
	base_url VARCHAR, 
	description VARCHAR, 
	enabled BOOLEAN NOT NULL, 
	config JSON NOT NULL, 
	feeds_sought_at BIGINT, 
	visibility VARCHAR(8) DEFAULT 'public' NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT uq_sources_code UNIQUE (code)
);
CREATE TABLE stores (
	name VARCHAR(64) NOT NULL, 
	location VARCHAR NOT NULL, 
	CONSTRAINT pk_stores PRIMARY KEY (name), 
	CONSTRAINT uq_stores_location UNIQUE (location)
);
CREATE TABLE usage_counts (
	day VARCHAR(10) NOT NULL, 
	event VARCHAR(32) NOT NULL, 
	count BIGINT NOT NULL, 
	CONSTRAINT pk_usage_counts PRIMARY KEY (day, event)
);
CREATE TABLE users (
	id INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	password_hash VARCHAR(255), 
	issuer VARCHAR(255), 
	subject VARCHAR(255), 
	created_at BIGINT NOT NULL, 
	signed_in_at BIGINT, 
	disabled_at BIGINT, 
	CONSTRAINT pk_users PRIMARY KEY (id), 
	CONSTRAINT uq_users_issuer_subject UNIQUE (issuer, subject), 
	CONSTRAINT uq_users_name UNIQUE (name)
);
CREATE TABLE webhooks (
	id INTEGER NOT NULL, 
	url TEXT NOT NULL, 
	description TEXT, 
	events JSON NOT NULL, 
	sources JSON NOT NULL, 
	secret TEXT NOT NULL, 
	previous_secret TEXT, 
	previous_until BIGINT, 
	jobs_after BIGINT DEFAULT '0' NOT NULL, 
	events_after BIGINT DEFAULT '0' NOT NULL, 
	changes_after BIGINT DEFAULT '0' NOT NULL, 
	disabled_at BIGINT, 
	disabled_reason TEXT, 
	created_by VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_webhooks PRIMARY KEY (id)
);
CREATE TABLE withdrawals (
	id INTEGER NOT NULL, 
	snapshot_id BIGINT, 
	url_key TEXT, 
	subject TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	actor VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	lifted_at BIGINT, 
	lifted_by VARCHAR, 
	CONSTRAINT pk_withdrawals PRIMARY KEY (id)
);
CREATE TABLE account_links (
	id INTEGER NOT NULL, 
	user_id INTEGER, 
	secret_hash BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	CONSTRAINT pk_account_links PRIMARY KEY (id), 
	CONSTRAINT uq_account_links_user_id UNIQUE (user_id), 
	CONSTRAINT fk_account_links_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_account_links_secret_hash UNIQUE (secret_hash)
);
CREATE TABLE added_urls (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	domain VARCHAR NOT NULL, 
	url_hash BIGINT NOT NULL, 
	url VARCHAR NOT NULL, 
	priority SMALLINT NOT NULL, 
	depth INTEGER NOT NULL, 
	execution_id BIGINT, 
	added_at BIGINT NOT NULL, 
	added_by VARCHAR NOT NULL, 
	CONSTRAINT pk_added_urls PRIMARY KEY (id), 
	CONSTRAINT uq_added_urls_source_id_domain_url_hash UNIQUE (source_id, domain, url_hash), 
	CONSTRAINT fk_added_urls_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
CREATE TABLE api_tokens (
	id INTEGER NOT NULL, 
	user_id INTEGER NOT NULL, 
	name VARCHAR(100) NOT NULL, 
	secret_hash BLOB NOT NULL, 
	hint VARCHAR(16) NOT NULL, 
	scopes JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	used_at BIGINT, 
	CONSTRAINT pk_api_tokens PRIMARY KEY (id), 
	CONSTRAINT fk_api_tokens_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_api_tokens_secret_hash UNIQUE (secret_hash)
);
CREATE TABLE diffs (
	id INTEGER NOT NULL, 
	from_document_id INTEGER NOT NULL, 
	to_document_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	added_sections INTEGER NOT NULL, 
	removed_sections INTEGER NOT NULL, 
	changed_sections INTEGER NOT NULL, 
	added_lines INTEGER NOT NULL, 
	removed_lines INTEGER NOT NULL, 
	ratio DOUBLE NOT NULL, 
	high_noise BOOLEAN NOT NULL, 
	truncated BOOLEAN NOT NULL, 
	body BLOB, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_diffs PRIMARY KEY (id), 
	CONSTRAINT uq_diffs_from_document_id_to_document_id_version UNIQUE (from_document_id, to_document_id, version), 
	CONSTRAINT fk_diffs_from_document_id FOREIGN KEY(from_document_id) REFERENCES documents (id), 
	CONSTRAINT fk_diffs_to_document_id FOREIGN KEY(to_document_id) REFERENCES documents (id)
);
CREATE TABLE document_texts (
	document_id INTEGER NOT NULL, 
	text BLOB NOT NULL, 
	CONSTRAINT pk_document_texts PRIMARY KEY (document_id), 
	CONSTRAINT fk_document_texts_document_id FOREIGN KEY(document_id) REFERENCES documents (id)
);
CREATE TABLE editions (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	year SMALLINT NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	search_ready BOOLEAN DEFAULT false NOT NULL, 
	research_ready BOOLEAN DEFAULT false NOT NULL, 
	intended_url_count INTEGER DEFAULT '0' NOT NULL, 
	captured_url_count INTEGER DEFAULT '0' NOT NULL, 
	failed_url_count INTEGER DEFAULT '0' NOT NULL, 
	missing_url_count INTEGER DEFAULT '0' NOT NULL, 
	excluded_url_count INTEGER DEFAULT '0' NOT NULL, 
	fallback_url_count INTEGER DEFAULT '0' NOT NULL, 
	shard_count INTEGER DEFAULT '0' NOT NULL, 
	indexed_shard_count INTEGER DEFAULT '0' NOT NULL, 
	needs_review_shard_count INTEGER DEFAULT '0' NOT NULL, 
	backend_counts JSON NOT NULL, 
	coverage_summary JSON NOT NULL, 
	target_ledger_path VARCHAR, 
	capture_manifest_path VARCHAR, 
	coverage_report_json_path VARCHAR, 
	coverage_report_md_path VARCHAR, 
	generated_at BIGINT, 
	frozen_at BIGINT, 
	frozen_path VARCHAR, 
	frozen_digest VARCHAR(71), 
	frozen_count INTEGER, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_editions PRIMARY KEY (id), 
	CONSTRAINT uq_editions_source_id_year UNIQUE (source_id, year), 
	CONSTRAINT fk_editions_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
CREATE TABLE feeds (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	url TEXT NOT NULL, 
	url_hash BIGINT NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	origin VARCHAR(10) NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_polled_at BIGINT, 
	next_poll_at BIGINT, 
	etag VARCHAR, 
	last_modified VARCHAR, 
	content_hash VARCHAR(71), 
	last_item_count INTEGER, 
	consecutive_errors INTEGER DEFAULT '0' NOT NULL, 
	last_error TEXT, 
	last_error_type VARCHAR(20), 
	disabled_at BIGINT, 
	CONSTRAINT pk_feeds PRIMARY KEY (id), 
	CONSTRAINT uq_feeds_source_id_url_hash UNIQUE (source_id, url_hash), 
	CONSTRAINT fk_feeds_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
CREATE TABLE jobs (
	id INTEGER NOT NULL, 
	source_id INTEGER, 
	kind VARCHAR(16) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	config JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT, 
	deleted_at BIGINT, 
	name VARCHAR, 
	url VARCHAR, 
	url_given BOOLEAN DEFAULT false NOT NULL, 
	state VARCHAR(9), 
	interval_minutes INTEGER, 
	interval_type VARCHAR(7) DEFAULT 'minutes' NOT NULL, 
	anchor VARCHAR(64), 
	schedule_enabled BOOLEAN DEFAULT false NOT NULL, 
	adaptive_scheduling BOOLEAN DEFAULT true NOT NULL, 
	next_run_at BIGINT, 
	due_at BIGINT, 
	rhythm_at BIGINT, 
	placed_at BIGINT, 
	paused_at BIGINT, 
	paused_by VARCHAR(6), 
	cancelled_at BIGINT, 
	lock_token VARCHAR(32), 
	lock_epoch BIGINT DEFAULT '0' NOT NULL, 
	lock_owner_id BIGINT, 
	lock_acquired_at BIGINT, 
	lock_heartbeat_at BIGINT, 
	max_retries INTEGER DEFAULT '3' NOT NULL, 
	retry_backoff_seconds INTEGER DEFAULT '60' NOT NULL, 
	current_retry_count INTEGER DEFAULT '0' NOT NULL, 
	infra_retry_count INTEGER DEFAULT '0' NOT NULL, 
	last_failure_at BIGINT, 
	error_message VARCHAR, 
	last_execution_at BIGINT, 
	total_runs INTEGER DEFAULT '0' NOT NULL, 
	successful_runs INTEGER DEFAULT '0' NOT NULL, 
	failed_runs INTEGER DEFAULT '0' NOT NULL, 
	total_duration_ms BIGINT DEFAULT '0' NOT NULL, 
	start_hash VARCHAR(128), 
	start_changed_at BIGINT, 
	unchanged_count INTEGER DEFAULT '0' NOT NULL, 
	details JSON DEFAULT '{}' NOT NULL, 
	edition_id BIGINT, 
	shard_key VARCHAR(64), 
	shard_kind VARCHAR(20), 
	acceptance_state VARCHAR(16), 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_jobs_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
CREATE TABLE page_groups (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	url TEXT NOT NULL, 
	url_hash BIGINT NOT NULL, 
	first_captured_at BIGINT NOT NULL, 
	last_captured_at BIGINT NOT NULL, 
	snapshot_count INTEGER NOT NULL, 
	latest_id BIGINT NOT NULL, 
	latest_ok_id BIGINT, 
	CONSTRAINT pk_page_groups PRIMARY KEY (id), 
	CONSTRAINT uq_page_groups_source_id_url_hash UNIQUE (source_id, url_hash), 
	CONSTRAINT fk_page_groups_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
CREATE TABLE robots (
	id INTEGER NOT NULL, 
	domain_id INTEGER NOT NULL, 
	origin VARCHAR NOT NULL, 
	answer VARCHAR(11) NOT NULL, 
	status INTEGER, 
	body BLOB NOT NULL, 
	failures INTEGER NOT NULL, 
	fetched_at BIGINT NOT NULL, 
	checked_at BIGINT NOT NULL, 
	CONSTRAINT pk_robots PRIMARY KEY (id), 
	CONSTRAINT fk_robots_domain_id FOREIGN KEY(domain_id) REFERENCES domains (id), 
	CONSTRAINT uq_robots_origin UNIQUE (origin)
);
CREATE TABLE user_sessions (
	id INTEGER NOT NULL, 
	user_id INTEGER NOT NULL, 
	secret_hash BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	seen_at BIGINT NOT NULL, 
	address VARCHAR(64) NOT NULL, 
	agent VARCHAR(200) NOT NULL, 
	CONSTRAINT pk_user_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_user_sessions_user_id FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE, 
	CONSTRAINT uq_user_sessions_secret_hash UNIQUE (secret_hash)
);
CREATE TABLE webhook_deliveries (
	id INTEGER NOT NULL, 
	webhook_id INTEGER NOT NULL, 
	event_key VARCHAR(40) NOT NULL, 
	message_id VARCHAR(40) NOT NULL, 
	event VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	state VARCHAR(9) NOT NULL, 
	attempts SMALLINT DEFAULT '0' NOT NULL, 
	next_at BIGINT NOT NULL, 
	status SMALLINT, 
	created_at BIGINT NOT NULL, 
	finished_at BIGINT, 
	owner_id BIGINT, 
	token BIGINT DEFAULT '0' NOT NULL, 
	lease_expires_at BIGINT, 
	CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id), 
	CONSTRAINT uq_webhook_deliveries_webhook_id_event_key UNIQUE (webhook_id, event_key), 
	CONSTRAINT fk_webhook_deliveries_webhook_id FOREIGN KEY(webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE
);
CREATE TABLE changes (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	group_id BIGINT, 
	url_hash BIGINT NOT NULL, 
	from_snapshot_id BIGINT, 
	to_snapshot_id BIGINT NOT NULL, 
	from_execution_id BIGINT, 
	to_execution_id BIGINT NOT NULL, 
	from_captured_at BIGINT, 
	to_captured_at BIGINT NOT NULL, 
	type VARCHAR(16) NOT NULL, 
	diff_id INTEGER, 
	error TEXT, 
	computed_at BIGINT NOT NULL, 
	CONSTRAINT pk_changes PRIMARY KEY (id), 
	CONSTRAINT fk_changes_source_id FOREIGN KEY(source_id) REFERENCES sources (id), 
	CONSTRAINT uq_changes_to_snapshot_id UNIQUE (to_snapshot_id), 
	CONSTRAINT fk_changes_diff_id FOREIGN KEY(diff_id) REFERENCES diffs (id)
);
CREATE TABLE executions (
	id INTEGER NOT NULL, 
	job_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason VARCHAR, 
	stop_requested VARCHAR(8), 
	paused_at BIGINT, 
	paused_by VARCHAR, 
	paused_seconds DOUBLE DEFAULT '0' NOT NULL, 
	config JSON NOT NULL, 
	output_dir VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	finished_at BIGINT, 
	run_seconds DOUBLE NOT NULL, 
	due_at BIGINT, 
	queued_at BIGINT, 
	takeovers SMALLINT DEFAULT '0' NOT NULL, 
	lost_items BIGINT DEFAULT '0' NOT NULL, 
	retry_attempt INTEGER DEFAULT '0' NOT NULL, 
	resumed_from BIGINT, 
	frontier_id BIGINT, 
	failure VARCHAR(20), 
	exit_code INTEGER, 
	stage VARCHAR, 
	duration_ms BIGINT, 
	cpu_ms BIGINT, 
	peak_memory_bytes BIGINT, 
	items_crawled BIGINT DEFAULT '0' NOT NULL, 
	items_indexed BIGINT DEFAULT '0' NOT NULL, 
	items_failed BIGINT DEFAULT '0' NOT NULL, 
	items_total BIGINT DEFAULT '0' NOT NULL, 
	error TEXT, 
	stack TEXT, 
	metrics JSON DEFAULT '{}' NOT NULL, 
	shortfalls JSON DEFAULT '{}' NOT NULL, 
	index_state VARCHAR(12), 
	artifacts JSON DEFAULT '{}' NOT NULL, 
	storage JSON DEFAULT '{}' NOT NULL, 
	cleanup_status VARCHAR(20) DEFAULT 'none' NOT NULL, 
	cleaned_at BIGINT, 
	log_lines INTEGER DEFAULT '0' NOT NULL, 
	log_bytes BIGINT DEFAULT '0' NOT NULL, 
	log_dropped INTEGER DEFAULT '0' NOT NULL, 
	pruned_at BIGINT, 
	directory VARCHAR(32), 
	CONSTRAINT pk_executions PRIMARY KEY (id), 
	CONSTRAINT uq_executions_job_id_number UNIQUE (job_id, number), 
	CONSTRAINT fk_executions_job_id FOREIGN KEY(job_id) REFERENCES jobs (id)
);
CREATE TABLE webhook_attempts (
	id INTEGER NOT NULL, 
	delivery_id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	took_ms INTEGER NOT NULL, 
	status SMALLINT, 
	error TEXT, 
	answer TEXT, 
	CONSTRAINT pk_webhook_attempts PRIMARY KEY (id), 
	CONSTRAINT fk_webhook_attempts_delivery_id FOREIGN KEY(delivery_id) REFERENCES webhook_deliveries (id) ON DELETE CASCADE
);
CREATE TABLE owners (
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	host VARCHAR NOT NULL, 
	pid INTEGER NOT NULL, 
	run_file VARCHAR NOT NULL, 
	execution_id INTEGER, 
	started_at BIGINT NOT NULL, 
	heartbeat_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	directory VARCHAR(32), 
	CONSTRAINT pk_owners PRIMARY KEY (id), 
	CONSTRAINT fk_owners_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id)
);
CREATE TABLE uploads (
	id INTEGER NOT NULL, 
	source_code VARCHAR(64) NOT NULL, 
	source_name TEXT, 
	name TEXT NOT NULL, 
	strict BOOLEAN DEFAULT false NOT NULL, 
	sha256 VARCHAR(64), 
	metadata_text TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	received BIGINT DEFAULT '0' NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	operation_id INTEGER, 
	actor TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	CONSTRAINT pk_uploads PRIMARY KEY (id), 
	CONSTRAINT fk_uploads_operation_id FOREIGN KEY(operation_id) REFERENCES executions (id)
);
CREATE TABLE warc_files (
	id INTEGER NOT NULL, 
	execution_id INTEGER NOT NULL, 
	owner_id BIGINT, 
	store VARCHAR(64) DEFAULT 'home' NOT NULL, 
	"key" VARCHAR NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	size BIGINT, 
	sha256 VARCHAR(64), 
	crc32 BIGINT, 
	record_count INTEGER, 
	repaired BOOLEAN DEFAULT false NOT NULL, 
	created_at BIGINT NOT NULL, 
	sealed_at BIGINT, 
	origin VARCHAR, 
	origin_sha256 VARCHAR(64), 
	index_state VARCHAR(8) DEFAULT 'pending' NOT NULL, 
	first_at BIGINT, 
	last_at BIGINT, 
	CONSTRAINT pk_warc_files PRIMARY KEY (id), 
	CONSTRAINT uq_warc_files_key_store UNIQUE ("key", store), 
	CONSTRAINT fk_warc_files_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id)
);
CREATE TABLE index_runs (
	warc_file_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	phase VARCHAR(16) NOT NULL, 
	records INTEGER DEFAULT '0' NOT NULL, 
	pages INTEGER DEFAULT '0' NOT NULL, 
	bytes_done BIGINT DEFAULT '0' NOT NULL, 
	bytes_total BIGINT DEFAULT '0' NOT NULL, 
	warnings JSON NOT NULL, 
	error VARCHAR, 
	started_at BIGINT NOT NULL, 
	progress_at BIGINT NOT NULL, 
	finished_at BIGINT, 
	owner_id BIGINT, 
	token BIGINT DEFAULT '0' NOT NULL, 
	lease_expires_at BIGINT, 
	CONSTRAINT pk_index_runs PRIMARY KEY (warc_file_id), 
	CONSTRAINT fk_index_runs_warc_file_id FOREIGN KEY(warc_file_id) REFERENCES warc_files (id)
);
CREATE TABLE snapshots (
	id BIGINT NOT NULL, 
	warc_file_id INTEGER NOT NULL, 
	execution_id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	warc_offset BIGINT NOT NULL, 
	warc_length BIGINT NOT NULL, 
	record_id VARCHAR, 
	record_type VARCHAR(8) NOT NULL, 
	url TEXT NOT NULL, 
	url_key TEXT NOT NULL, 
	url_hash BIGINT NOT NULL, 
	page_key TEXT, 
	group_id INTEGER, 
	captured_at BIGINT NOT NULL, 
	method VARCHAR(16), 
	status SMALLINT, 
	media_type VARCHAR, 
	payload_digest VARCHAR, 
	body_hash BLOB, 
	document_id INTEGER, 
	is_page BOOLEAN NOT NULL, 
	noindex BOOLEAN DEFAULT false NOT NULL, 
	canonical_id BIGINT, 
	original_id BIGINT, 
	refers_to_url TEXT, 
	refers_to_at BIGINT, 
	redirect_to TEXT, 
	truncated VARCHAR(16), 
	problems VARCHAR, 
	backend VARCHAR(16) DEFAULT 'native' NOT NULL, 
	fidelity VARCHAR(8) DEFAULT 'unknown' NOT NULL, 
	compared BOOLEAN DEFAULT false NOT NULL, 
	noise VARCHAR(16), 
	CONSTRAINT pk_snapshots PRIMARY KEY (id), 
	CONSTRAINT fk_snapshots_warc_file_id FOREIGN KEY(warc_file_id) REFERENCES warc_files (id), 
	CONSTRAINT fk_snapshots_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id), 
	CONSTRAINT fk_snapshots_source_id FOREIGN KEY(source_id) REFERENCES sources (id), 
	CONSTRAINT fk_snapshots_group_id FOREIGN KEY(group_id) REFERENCES page_groups (id), 
	CONSTRAINT fk_snapshots_document_id FOREIGN KEY(document_id) REFERENCES documents (id)
);
CREATE INDEX ix_alerts_resolved ON alerts (resolved_at);
CREATE UNIQUE INDEX uq_alerts_firing ON alerts (name) WHERE resolved_at IS NULL;
CREATE INDEX ix_domains_changed_at ON domains (changed_at) WHERE changed_at IS NOT NULL;
CREATE INDEX ix_domains_circuit ON domains (circuit_state) WHERE circuit_state <> 'closed';
CREATE INDEX ix_domains_lease_owner ON domains (lease_owner) WHERE lease_owner IS NOT NULL;
CREATE INDEX ix_domains_unreachable_since ON domains (unreachable_since) WHERE unreachable_since IS NOT NULL;
CREATE INDEX ix_events_at ON events (at);
CREATE INDEX ix_feed_items_waiting ON feed_items (source_id, id) WHERE execution_id IS NULL;
CREATE INDEX ix_holds_execution ON holds (execution_id, id);
CREATE INDEX ix_issue_reports_status ON issue_reports (status, id);
CREATE INDEX ix_job_events_at ON job_events (at);
CREATE INDEX ix_job_events_job ON job_events (job_id, id);
CREATE INDEX ix_link_texts_snapshot ON link_texts (snapshot_id);
CREATE INDEX ix_linked_host_votes_site ON linked_host_votes (site);
CREATE INDEX ix_linked_hosts_sites ON linked_hosts (sites DESC, links DESC, "key");
CREATE INDEX ix_log_lines_execution ON log_lines (execution_id, id);
CREATE INDEX ix_noise_queue_first_id ON noise_queue (first_id);
CREATE INDEX ix_noise_queue_order ON noise_queue (late, id);
CREATE INDEX ix_noise_rulings_key ON noise_rulings (url_key, id);
CREATE INDEX ix_noise_rulings_snapshot ON noise_rulings (snapshot_id, id);
CREATE INDEX ix_noise_suspects_alike ON noise_suspects (site, likeness, kind, leaf);
CREATE INDEX ix_noise_suspects_url_hash ON noise_suspects (url_hash);
CREATE INDEX ix_noise_suspects_errors ON noise_suspects (site) WHERE kind IS NULL;
CREATE INDEX ix_noise_suspects_unmarked ON noise_suspects (site, likeness, snapshot_id) WHERE NOT marked AND kind IS NOT NULL;
CREATE INDEX ix_page_crawls_page_id ON page_crawls (page_id, id);
CREATE INDEX ix_page_crawls_deferred ON page_crawls (execution_id, domain_id, scheduled_for, id) WHERE outcome IS NULL AND scheduled_for IS NOT NULL;
CREATE INDEX ix_page_crawls_made ON page_crawls (completed_at) WHERE started_at IS NOT NULL;
CREATE INDEX ix_page_crawls_queue ON page_crawls (execution_id, domain_id, priority DESC, id) WHERE outcome IS NULL AND scheduled_for IS NULL;
CREATE INDEX ix_page_crawls_warc_file ON page_crawls (warc_file_id, warc_offset) WHERE warc_file_id IS NOT NULL;
CREATE INDEX ix_page_links_to_hash ON page_links (to_hash);
CREATE INDEX ix_pages_language ON pages (language) WHERE language IS NOT NULL;
CREATE INDEX ix_queues_due ON queues (execution_id, due_at, domain_id) WHERE open > 0;
CREATE INDEX ix_recoveries_job ON recoveries (job_id, at);
CREATE INDEX ix_series_at ON series (step_s, at);
CREATE INDEX ix_sign_in_failures_since ON sign_in_failures (since);
CREATE INDEX ix_signal_links_to_hash ON signal_links (to_hash);
CREATE INDEX ix_signal_pages_source ON signal_pages (source_id, page_id);
CREATE INDEX ix_signal_words_page ON signal_words (page_id);
CREATE INDEX ix_sources_members ON sources (visibility, id) WHERE visibility = 'members';
CREATE INDEX ix_withdrawals_key ON withdrawals (url_key) WHERE lifted_at IS NULL;
CREATE INDEX ix_withdrawals_snapshot ON withdrawals (snapshot_id) WHERE lifted_at IS NULL;
CREATE INDEX ix_api_tokens_user ON api_tokens (user_id, id);
CREATE INDEX ix_feeds_disabled ON feeds (disabled_at, id) WHERE disabled_at IS NOT NULL;
CREATE INDEX ix_feeds_due ON feeds (next_poll_at, id) WHERE next_poll_at IS NOT NULL;
CREATE INDEX ix_jobs_edition ON jobs (edition_id);
CREATE INDEX ix_jobs_kind_fingerprint ON jobs (kind, fingerprint);
CREATE INDEX ix_jobs_source_id ON jobs (source_id);
CREATE INDEX ix_jobs_state ON jobs (state, id);
CREATE INDEX ix_jobs_updated ON jobs (updated_at);
CREATE INDEX ix_jobs_due ON jobs (next_run_at, id) WHERE next_run_at IS NOT NULL;
CREATE INDEX ix_jobs_locked ON jobs (lock_heartbeat_at, id) WHERE lock_token IS NOT NULL;
CREATE UNIQUE INDEX uq_jobs_crawl ON jobs (source_id) WHERE kind = 'crawl' AND state <> 'cancelled' AND deleted_at IS NULL;
CREATE UNIQUE INDEX uq_jobs_operation ON jobs (fingerprint) WHERE source_id IS NULL AND state IN ('pending','scheduled','running');
CREATE INDEX ix_page_groups_last ON page_groups (last_captured_at, id);
CREATE INDEX ix_page_groups_source_last ON page_groups (source_id, last_captured_at, id);
CREATE INDEX ix_page_groups_url_hash ON page_groups (url_hash);
CREATE INDEX ix_robots_domain_id ON robots (domain_id);
CREATE INDEX ix_user_sessions_expires_at ON user_sessions (expires_at);
CREATE INDEX ix_user_sessions_user ON user_sessions (user_id, id);
CREATE INDEX ix_webhook_deliveries_age ON webhook_deliveries (created_at);
CREATE INDEX ix_webhook_deliveries_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX ix_webhook_deliveries_due ON webhook_deliveries (webhook_id, next_at, id) WHERE state = 'pending';
CREATE INDEX ix_changes_execution ON changes (to_execution_id, to_captured_at, id);
CREATE INDEX ix_changes_moment ON changes (to_captured_at, id);
CREATE INDEX ix_changes_source ON changes (source_id, to_captured_at, id);
CREATE INDEX ix_changes_source_order ON changes (source_id, id);
CREATE INDEX ix_changes_execution_noise ON changes (to_execution_id, to_captured_at, id) WHERE type = 'noise';
CREATE INDEX ix_changes_execution_told ON changes (to_execution_id, to_captured_at, id) WHERE type <> 'unchanged' AND type <> 'noise';
CREATE INDEX ix_changes_moment_noise ON changes (to_captured_at, id) WHERE type = 'noise';
CREATE INDEX ix_changes_moment_told ON changes (to_captured_at, id) WHERE type <> 'unchanged' AND type <> 'noise';
CREATE INDEX ix_changes_source_noise ON changes (source_id, to_captured_at, id) WHERE type = 'noise';
CREATE INDEX ix_changes_source_told ON changes (source_id, to_captured_at, id) WHERE type <> 'unchanged' AND type <> 'noise';
CREATE UNIQUE INDEX uq_executions_due ON executions (job_id, due_at);
CREATE INDEX ix_executions_aging ON executions (finished_at, id) WHERE pruned_at IS NULL AND finished_at IS NOT NULL;
CREATE INDEX ix_executions_failed ON executions (finished_at, id) WHERE pruned_at IS NULL AND (state = 'failed' OR index_state = 'index_failed');
CREATE INDEX ix_executions_queued ON executions (queued_at, id) WHERE state = 'queued';
CREATE INDEX ix_executions_to_index ON executions (id) WHERE index_state IN ('pending','indexing');
CREATE INDEX ix_executions_unpruned ON executions (job_id, number) WHERE pruned_at IS NULL;
CREATE UNIQUE INDEX uq_executions_open ON executions (job_id) WHERE state IN ('queued','running','stopped');
CREATE INDEX ix_webhook_attempts_delivery ON webhook_attempts (delivery_id, id);
CREATE INDEX ix_owners_directory ON owners (directory, heartbeat_at) WHERE directory IS NOT NULL;
CREATE INDEX ix_owners_open ON owners (host) WHERE ended_at IS NULL;
CREATE INDEX ix_uploads_expiry ON uploads (expires_at) WHERE expires_at IS NOT NULL;
CREATE UNIQUE INDEX uq_uploads_open_digest ON uploads (sha256) WHERE expires_at IS NOT NULL AND sha256 IS NOT NULL;
CREATE INDEX ix_warc_files_execution_id ON warc_files (execution_id, id);
CREATE INDEX ix_warc_files_origin_sha256 ON warc_files (origin_sha256);
CREATE INDEX ix_warc_files_open ON warc_files (owner_id) WHERE state = 'open';
CREATE INDEX ix_warc_files_to_index ON warc_files (id) WHERE state = 'sealed' AND index_state IN ('pending','running');
CREATE INDEX ix_snapshots_document ON snapshots (document_id, id);
CREATE INDEX ix_snapshots_execution ON snapshots (execution_id, id);
CREATE INDEX ix_snapshots_group ON snapshots (group_id, captured_at, id);
CREATE INDEX ix_snapshots_key ON snapshots (url_key, captured_at, id);
CREATE INDEX ix_snapshots_page ON snapshots (url_hash, captured_at, id);
CREATE INDEX ix_snapshots_source ON snapshots (source_id, id);
CREATE INDEX ix_snapshots_source_key ON snapshots (source_id, url_key);
CREATE INDEX ix_snapshots_noise_execution ON snapshots (execution_id, id) WHERE noise IS NOT NULL;
CREATE INDEX ix_snapshots_noise_page ON snapshots (url_hash, id) WHERE noise IS NOT NULL;
CREATE INDEX ix_snapshots_noise_source ON snapshots (source_id, id) WHERE noise IS NOT NULL;
CREATE INDEX ix_snapshots_original ON snapshots (original_id) WHERE original_id IS NOT NULL;
CREATE INDEX ix_snapshots_page_key ON snapshots (page_key) WHERE page_key IS NOT NULL;
CREATE INDEX ix_snapshots_to_compare ON snapshots (source_id, id) WHERE is_page AND NOT compared;
CREATE INDEX ix_snapshots_unresolved ON snapshots (id) WHERE record_type = 'revisit' AND original_id IS NULL;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version(version_num) VALUES ('0039');
