CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
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
	is_allowed BOOLEAN DEFAULT (true) NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_domains PRIMARY KEY (id), 
	CONSTRAINT uq_domains_name UNIQUE (name)
);
CREATE INDEX ix_domains_lease_owner ON domains (lease_owner) WHERE lease_owner IS NOT NULL;
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
CREATE TABLE page_crawls (
	id INTEGER NOT NULL, 
	execution_id BIGINT NOT NULL, 
	domain_id BIGINT NOT NULL, 
	page_id BIGINT NOT NULL, 
	attempt SMALLINT NOT NULL, 
	kind VARCHAR(9) NOT NULL, 
	priority SMALLINT NOT NULL, 
	depth INTEGER NOT NULL, 
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
CREATE INDEX ix_page_crawls_queue ON page_crawls (execution_id, domain_id, priority DESC, id) WHERE outcome IS NULL AND scheduled_for IS NULL;
CREATE INDEX ix_page_crawls_page_id ON page_crawls (page_id, id);
CREATE INDEX ix_page_crawls_deferred ON page_crawls (execution_id, domain_id, scheduled_for, id) WHERE outcome IS NULL AND scheduled_for IS NOT NULL;
CREATE INDEX ix_page_crawls_warc_file ON page_crawls (warc_file_id, warc_offset) WHERE warc_file_id IS NOT NULL;
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
CREATE INDEX ix_pages_language ON pages (language) WHERE language IS NOT NULL;
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
CREATE INDEX ix_queues_due ON queues (execution_id, due_at, domain_id) WHERE open > 0;
CREATE TABLE sources (
	id INTEGER NOT NULL, 
	code VARCHAR(16) NOT NULL, 
	name VARCHAR NOT NULL, 
	base_url VARCHAR, 
	description VARCHAR, 
	enabled BOOLEAN NOT NULL, 
	config JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT uq_sources_code UNIQUE (code)
);
CREATE TABLE jobs (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	config JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT fk_jobs_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
CREATE INDEX ix_jobs_kind_fingerprint ON jobs (kind, fingerprint);
CREATE INDEX ix_jobs_source_id ON jobs (source_id);
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
CREATE INDEX ix_robots_domain_id ON robots (domain_id);
CREATE TABLE executions (
	id INTEGER NOT NULL, 
	job_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	reason VARCHAR, 
	stop_requested VARCHAR(8), 
	config JSON NOT NULL, 
	output_dir VARCHAR NOT NULL, 
	created_at BIGINT NOT NULL, 
	started_at BIGINT, 
	finished_at BIGINT, 
	run_seconds DOUBLE NOT NULL, 
	CONSTRAINT pk_executions PRIMARY KEY (id), 
	CONSTRAINT fk_executions_job_id FOREIGN KEY(job_id) REFERENCES jobs (id), 
	CONSTRAINT uq_executions_job_id_number UNIQUE (job_id, number)
);
CREATE UNIQUE INDEX uq_executions_open ON executions (job_id) WHERE state IN ('running','stopped');
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
	CONSTRAINT pk_owners PRIMARY KEY (id), 
	CONSTRAINT fk_owners_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id)
);
CREATE INDEX ix_owners_open ON owners (host) WHERE ended_at IS NULL;
CREATE TABLE warc_files (
	id INTEGER NOT NULL, 
	execution_id INTEGER NOT NULL, 
	owner_id BIGINT, 
	path VARCHAR NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	size BIGINT, 
	sha256 VARCHAR(64), 
	crc32 BIGINT, 
	record_count INTEGER, 
	repaired BOOLEAN DEFAULT (false) NOT NULL, 
	created_at BIGINT NOT NULL, 
	sealed_at BIGINT, 
	CONSTRAINT pk_warc_files PRIMARY KEY (id), 
	CONSTRAINT fk_warc_files_execution_id FOREIGN KEY(execution_id) REFERENCES executions (id), 
	CONSTRAINT uq_warc_files_path UNIQUE (path)
);
CREATE INDEX ix_warc_files_execution_id ON warc_files (execution_id, id);
CREATE INDEX ix_warc_files_open ON warc_files (owner_id) WHERE state = 'open';
INSERT INTO alembic_version(version_num) VALUES ('0001');
