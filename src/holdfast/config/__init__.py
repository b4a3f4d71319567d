"""Every setting, grouped and documented. Read from `HOLDFAST_*` variables, a `.env` file, or a TOML file.

A group's field is spelled `HOLDFAST_<GROUP>_<FIELD>` in the environment and `[group] field = …` in TOML. Times that
guard leases have a floor, so that tests run in seconds and a value that cannot work is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from holdfast.config.model import (
    PREFIX,
    Nameserver,
    Network,
    Origins,
    Proxy,
    Secret,
    SettingGroup,
    SettingRefused,
    gather,
    setting,
)
from holdfast.errors import Invalid

__all__ = ["PREFIX", "Network", "SettingGroup", "Settings", "load"]


class LeaseSettings(SettingGroup):
    """How long work is held, and when a silent owner counts as gone."""

    seconds: float = setting(60.0, ge=1.0, description="How long a domain's lease lasts without renewal.")
    renew_s: float = setting(15.0, ge=0.2, description="How often a process renews all its leases, in one statement.")
    recover_s: float = setting(900.0, ge=2.0, description="Age of an expired lease that `frontier recover` frees.")


class PolitenessSettings(SettingGroup):
    """How gently a domain is asked."""

    delay_s: float = setting(
        1.0,
        ge=0.0,
        description="Seconds between starts of two requests to one domain; a source's delay_s and --delay win.",
    )
    max_delay_s: float = setting(300.0, ge=1.0, description="Cap on a robots.txt crawl-delay; logged when it bites.")
    unreachable_s: float = setting(
        1800.0,
        ge=1.0,
        description="How long a domain may stay unreachable before its pages are closed; it is tried at "
        "least once a minute meanwhile.",
    )
    circuit_failures: int = setting(
        5,
        ge=1,
        description="Failures in a row that open a domain's circuit. If they may be the pages' own (500, timeout), the "
        "page that the domain answered last is asked for first, and must fail too.",
    )
    circuit_reset_s: float = setting(60.0, ge=0.1, description="How long an open circuit waits before it tries again.")
    retries: int = setting(3, ge=0, description="How often a page is asked again after a transient failure.")
    retry_base_s: float = setting(
        1.0,
        ge=0.0,
        description="First wait before a retry; it doubles each time, with up to half of it more at random. "
        "A retry never comes before the domain's next turn, and each 429 or 503 doubles the domain's delay.",
    )


class FetchSettings(SettingGroup):
    """What one request may cost."""

    deadline_s: float = setting(30.0, ge=0.2, description="Total time for one request.")
    connect_s: float = setting(10.0, ge=0.1, description="Time to connect, TLS included.")
    min_rate: int = setting(64, ge=0, description="Bytes a second below which a transfer is given up.")
    min_rate_s: float = setting(10.0, ge=0.5, description="How long a transfer may stay below the minimum rate.")
    body_bytes: int = setting(
        100 * 1024**2, ge=1024, description="Largest body that is kept whole; the rest is cut off."
    )
    connections: int = setting(2000, ge=4, description="Open connections of one process, kept-alive ones included.")
    per_ip_rate: float = setting(
        20.0,
        ge=0.0,
        description="Requests a second to one IP address (IPv6: /64) by all crawls of this machine, whatever the hosts "
        "are called; 0 is no limit. Allowed private networks are exempt unless this is set.",
    )
    per_ip_connections: int = setting(
        20,
        ge=0,
        description="Requests under way to one IP address by all crawls of this machine; 0 is no limit. "
        "Exempt as above.",
    )
    nameservers: tuple[Nameserver, ...] = setting(
        (), description="IP addresses of DNS servers to ask, comma-separated; empty means the system's."
    )


class ParseSettings(SettingGroup):
    """What one page may cost to parse."""

    deadline_s: float = setting(5.0, ge=0.1, description="Time after which a parse is given up and the page noted.")
    max_bytes: int = setting(10 * 1024**2, ge=1024, description="Largest document that is parsed for links.")
    crashes: int = setting(3, ge=1, description="Processes that a page may take down before it is quarantined.")


class WarcSettings(SettingGroup):
    """When a WARC file is full."""

    bytes: int = setting(10**9, ge=4096, description="Size at which a file is sealed.")
    age_s: float = setting(3600.0, ge=1.0, description="Age at which a file is sealed.")
    idle_s: float = setting(600.0, ge=1.0, description="Idle time after which a file is sealed.")


class IndexSettings(SettingGroup):
    """How captures are read into the archive beside what else the machine does."""

    nice: int = setting(
        10, ge=0, le=19, description="Priority that indexing gives up, so that readers and crawls come first; 0 none."
    )


class EngineSettings(SettingGroup):
    """The rhythm of a crawl process."""

    settle_pages: int = setting(200, ge=1, description="Attempts that are settled in one transaction at most.")
    settle_s: float = setting(0.5, ge=0.01, description="Longest wait before finished attempts are settled.")
    domains: int = setting(1000, ge=1, description="Domains that one process asks at the same time.")
    backlog: int = setting(64, ge=1, description="Fetched pages that may wait for parsing before fetching pauses.")
    watchdog_s: float = setting(20.0, ge=1.0, description="Silence of a process's loop after which it is killed.")
    known_urls: int = setting(1_000_000, ge=1000, description="URLs that a process remembers to spare the database.")


class TrapSettings(SettingGroup):
    """From where on a site looks endless; what is over is counted as `trap`."""

    query_variants: int = setting(100_000, ge=1, description="Different queries of one path.")
    hosts: int = setting(10_000, ge=1, description="Hosts of one registrable domain.")
    directory_urls: int = setting(1_000_000, ge=1, description="URLs that stand in one directory of a host.")
    domain_urls: int = setting(20_000_000, ge=1, description="URLs of one host in one execution.")


class DiskSettings(SettingGroup):
    """When the disk counts as full: nothing new starts below either mark."""

    free_bytes: int = setting(2 * 1024**3, ge=0, description="Free bytes to keep.")
    free_percent: float = setting(5.0, ge=0, le=90, description="Free share of the disk to keep.")


REPLAY_HOST = "replay.localhost"
"""The host of archived pages where no origin is set; browsers lead it to this machine."""
_RELAXED = ("development", "dev", "local", "test", "testing", "ci")


class ApiSettings(SettingGroup):
    """What is served over HTTP, to which clients, and how much of it."""

    host: str = setting("127.0.0.1", description="Address to listen on; other than loopback only with an admin token.")
    port: int = setting(8060, ge=0, le=65535, description="Port to listen on; 0 lets the kernel choose.")
    admin_token: Secret | None = setting(
        None, min_length=1, description="Secret for admin routes; strict environments want at least 16 characters."
    )
    environment: str = setting(
        "development",
        description="Name of the installation; strict unless it is development, dev, local, test, testing or ci.",
    )
    site_url: str | None = setting(None, description="Where readers find this archive, for links in feeds and exports.")
    allowed_hosts: tuple[str, ...] = setting(
        (), description="Host names to answer to, beside loopback; comma-separated."
    )
    cors_origins: tuple[str, ...] = setting(
        (), description="Origins whose pages may read public routes, packages too: matched exactly; comma-separated."
    )
    trusted_proxies: tuple[Proxy, ...] = setting(
        (), description="IP addresses and networks (CIDR) whose X-Forwarded-For is believed; comma-separated."
    )
    hsts: bool = setting(True, description="Send Strict-Transport-Security; browsers heed it over https only.")
    body_bytes: int = setting(1024**2, ge=1024, description="Largest request body.")
    head_s: float = setting(10.0, ge=0.1, description="Time in which the head of a request must arrive.")
    write_s: float = setting(30.0, ge=0.1, description="Time in which a client that stopped reading must read on.")
    connections_per_address: int = setting(
        100,
        ge=1,
        description="Connections that one address (IPv6: /64) may hold, of 1,000 in all; behind a trusted proxy, "
        "requests under way of the address that it forwards.",
    )
    query_chars: int = setting(8192, ge=256, description="Longest query string.")
    rate_limiting: bool = setting(True, description="Whether requests are counted per address and minute.")
    general_per_minute: int = setting(120, ge=1, description="Requests an address may make in a minute.")
    search_per_minute: int = setting(60, ge=1, description="Searches an address may make in a minute.")
    cdx_per_minute: int = setting(120, ge=1, description="CDX queries an address may make in a minute, on both hosts.")
    exports_per_minute: int = setting(10, ge=1, description="Exports an address may start in a minute.")
    packages_per_minute: int = setting(
        60, ge=1, description="Pages an address may open in ReplayWeb.page in a minute: each is read from a package."
    )
    reports_per_minute: int = setting(5, ge=1, description="Problem reports an address may send in a minute.")
    replay_per_minute: int = setting(3000, ge=1, description="Archived resources an address may load in a minute.")
    admin_per_minute: int = setting(
        500, ge=1, description="Admin requests in a minute of an observer, operator, administrator or the admin token."
    )
    member_per_minute: int = setting(100, ge=1, description="Admin requests in a minute of a member.")
    intruder_per_minute: int = setting(10, ge=1, description="Admin requests in a minute of who did not sign in.")
    seeds_per_minute: int = setting(10, ge=1, description="Requests in a minute that add seeds to the frontier.")
    exports: bool = setting(True, description="Whether exports are offered.")
    exports_default_limit: int = setting(1000, ge=1, description="Rows of an export that does not say how many.")
    exports_max_limit: int = setting(10_000, ge=1, description="Most rows of one export.")
    exports_max_records: int = setting(
        10_000_000,
        ge=1,
        description="Most records in the WARC files whose CDXJ index is sorted for a request; "
        "a capture is mostly two of them.",
    )
    changes: bool = setting(True, description="Whether change tracking is shown.")
    compare_live: bool = setting(
        False, description="Whether everybody may compare a capture with the live page; operators always may."
    )
    upkeep: bool = setting(
        True,
        description="Whether the server itself takes new captures into search, compares them, and runs operations that "
        "were asked for over HTTP.",
    )
    streams: int = setting(600, ge=1, description="Live streams that one process serves at once, of 1,000 connections.")
    streams_per_principal: int = setting(
        20, ge=1, description="Live streams that one user or token may hold in one process."
    )
    stream_s: float = setting(
        3600.0, ge=0.01, description="Time after which a live stream ends; clients take it up again where it ended."
    )
    usage: bool = setting(True, description="Whether daily usage counts are kept and shown; no reader is followed.")
    usage_window_days: int = setting(30, ge=1, le=366, description="Days that usage counts are shown for.")

    @property
    def strict(self) -> bool:
        """Whether the server refuses to start without an admin token.

        A name that we do not know is taken for an installation that others rely on: `prod` and `live` are strict.
        """
        return self.environment.strip().lower() not in _RELAXED


class AuthSettings(SettingGroup):
    """Who signs in, how, and for how long."""

    session_hours: float = setting(24.0, gt=0.0, le=720.0, description="How long a browser stays signed in.")
    failures_per_account_and_address: int = setting(
        10,
        ge=1,
        description="Failed sign-ins to one account from one address, or from a browser that has signed in before, "
        "after which it must wait for the window to end.",
    )
    failures_per_account: int = setting(
        100,
        ge=1,
        description="Failed sign-ins to one account from all addresses together after which it must wait; a browser "
        "that has signed in to it before is not kept waiting.",
    )
    failures_per_address: int = setting(
        30, ge=1, description="Failed sign-ins from one address (IPv6: /64) after which it must wait."
    )
    failure_minutes: float = setting(15.0, gt=0.0, le=1440.0, description="The window that these are counted in.")
    jwt_secret: Secret | None = setting(
        None,
        min_length=1,
        description="Secret of at least 32 bytes that another system signs bearer tokens with (JWT, HS256); without "
        "it none is taken. Their `role` is required: member, observer, operator or administrator.",
    )
    jwt_audience: str = setting(
        "holdfast", min_length=1, description="`aud` that such a token must have, alone or in a list."
    )
    jwt_issuer: str = setting("holdfast", min_length=1, description="`iss` that such a token must have.")
    jwt_max_s: float = setting(86_400.0, gt=0.0, description="Longest time from `iat` to `exp` of such a token.")
    oidc_issuer: str | None = setting(
        None,
        pattern=r"^https?://[^?#\s]+$",
        description="Identity provider (OpenID Connect) to sign in with, as https://login.example.org; empty: none.",
    )
    oidc_client_id: str | None = setting(None, description="What this server is called at the identity provider.")
    oidc_client_secret: Secret | None = setting(
        None, min_length=1, description="Its secret there; left out for a public client."
    )
    oidc_name: str = setting("single sign-on", min_length=1, description="What the sign-in page calls it.")
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile"), description="Scopes to ask it for; comma-separated, openid among them."
    )
    oidc_allow_networks: tuple[Network, ...] = setting(
        (), description="Private networks (CIDR, comma-separated) that the identity provider may stand in."
    )
    oidc_name_claim: str = setting(
        "preferred_username", min_length=1, description="Claim of the ID token that a new user is named after."
    )
    oidc_role_claim: str = setting("groups", min_length=1, description="Claim that says what a user may do.")
    oidc_roles: tuple[str, ...] = setting(
        (),
        description="What its values mean, as archivists=operator,admins=administrator; the highest that fits counts.",
    )
    oidc_default_role: str | None = setting(
        None,
        pattern=r"^(member|observer|operator|administrator)$",
        description="Role of a user that none of them fits; without it such a user is not let in.",
    )


class ExportSettings(SettingGroup):
    """What exports keep on the disk."""

    cache_bytes: int = setting(
        2 * 1024**3,
        ge=0,
        description="Size of `cache/wacz`, the indexes of packages: beyond it, what was asked for longest ago and is "
        "not being read goes; the package asked for last stays whatever its size. `cache/editions`, the copies of "
        "editions' files without what was withdrawn, has the same size for itself.",
    )


class UploadSettings(SettingGroup):
    """What may be uploaded for import."""

    max_bytes: int = setting(100 * 1024**3, ge=1, description="Largest file that may be uploaded.")
    at_once: int = setting(100, ge=1, description="Uploads that may be open at once.")
    expire_s: float = setting(
        86_400.0, ge=1.0, description="How long an upload that gets no more bytes, or whose import failed, is kept."
    )
    silence_s: float = setting(30.0, ge=0.1, description="How long the next bytes of a piece may take to arrive.")


class ReplaySettings(SettingGroup):
    """Where archived pages are shown: never on the application's own origin."""

    origin: str | None = setting(
        None,
        pattern=r"^https?://[^/?#\s]+$",
        description="Origin of archived pages, as https://replay.example.org; replay.localhost if left out.",
    )
    scripts: bool = setting(True, description="Whether archived scripts may run, in a sandbox without any authority.")
    rewrite_s: float = setting(
        3.0, ge=0.0, description="Time to rewrite a page; longer ones come as they are, no scripts."
    )
    members_s: float = setting(
        3600.0,
        ge=60.0,
        le=86_400.0,
        description="How long the signed address of a members' capture on the replay host can be used.",
    )
    renderer_dir: Path | None = setting(
        None,
        description="Folder with `ui.js` and `sw.js` of ReplayWeb.page: then it is offered as a second way to show a "
        "public capture (docs/replay.md).",
    )


class JobSettings(SettingGroup):
    """When jobs run, who holds them, and how much of their history is kept."""

    poll_s: float = setting(10.0, ge=0.05, description="How often the scheduler looks for jobs that are due.")
    batch: int = setting(100, ge=1, le=1000, description="Jobs that one look queues at most.")
    heartbeat_s: float = setting(30.0, ge=0.05, description="How often a worker says that it still runs its job.")
    stale_s: float = setting(300.0, ge=0.5, description="Silence after which a job's lock is cleared.")
    sweep_s: float = setting(60.0, ge=0.1, description="How often stale locks are looked for.")
    metrics_s: float = setting(30.0, ge=0.1, description="How often the scheduler's metrics are counted anew.")
    takeovers: int = setting(3, ge=0, description="Silent owners that one execution may have before it fails.")
    infra_cooldown_s: float = setting(600.0, ge=0.0, description="Wait after a failure that was the machine's fault.")
    infra_retries: int = setting(5, ge=0, description="Such failures in a row after which a job is given up.")
    auto_interval_minutes: int = setting(1440, ge=1, description="Interval of jobs that are made for enabled sources.")
    history_rows: int = setting(100, ge=1, description="Newest executions of a job whose log and metrics are kept.")
    history_days: float = setting(30.0, gt=0.0, description="Age up to which an execution's log and metrics are kept.")
    events_days: float = setting(7.0, gt=0.0, description="Age up to which events are kept for streaming.")
    series_minutes_days: float = setting(
        7.0, gt=0.0, description="Age up to which what happened is kept by the minute; then by the hour."
    )
    series_hours_days: float = setting(
        90.0, gt=0.0, description="Age up to which what happened is kept by the hour; then by the day."
    )
    series_days: float = setting(
        1825.0, gt=0.0, description="Age up to which what happened is kept by the day; totals are kept for ever."
    )
    log_lines: int = setting(50_000, ge=100, description="Lines of one execution's log; the rest is counted.")
    log_level: str = setting(
        "info", pattern="^(debug|info|warning|error)$", description="Least level of lines in an execution's log."
    )


class FeedSettings(SettingGroup):
    """How the feeds and sitemaps of sources are found and asked for what is new (sources whose `feeds` is on)."""

    poll: bool = setting(True, description="Whether feeds are polled at all; off, no source has a feed job.")
    discovery: bool = setting(
        True, description="Whether start pages, usual places and robots.txt are searched for feeds."
    )
    interval_minutes: int = setting(15, ge=1, description="Time between two polls of a source's feeds and sitemaps.")
    search_hours: float = setting(24.0, gt=0.0, description="Time after which a source is searched for feeds again.")
    child_hours: float = setting(
        24.0,
        gt=0.0,
        description="Time between two polls of a sitemap that an index names, "
        "unless the index says that it has changed.",
    )
    max_age_days: float = setting(30.0, gt=0.0, description="Items whose date is older than this are left to crawls.")
    items: int = setting(
        500, ge=1, le=5000, description="New items that one poll captures; the rest waits for the next."
    )
    per_source: int = setting(
        200, ge=1, description="Feeds and sitemaps that one source may have, those included that were disabled."
    )
    waiting: int = setting(
        50_000,
        ge=100,
        description="Items of one source that may wait to be captured (sitemaps: four fifths of it); "
        "the rest is read again when there is room.",
    )


class WorkerSettings(SettingGroup):
    """What one worker does at a time."""

    concurrency: int = setting(1, ge=1, le=64, description="Executions that one worker runs at once.")
    processes: int = setting(1, ge=1, le=64, description="Crawl processes of one execution.")
    max_time_s: float = setting(
        30 * 86_400.0, ge=0.0, description="Longest that one execution may be at work, in seconds; 0: no limit."
    )
    rest_s: float = setting(
        2.0, ge=0.05, description="How long a worker rests when no background work (indexing, reports) waits."
    )


class WebhookSettings(SettingGroup):
    """How other systems are told of events."""

    deliver: bool = setting(
        True, description="Whether servers and workers of this machine send what waits; off, others have to."
    )
    most: int = setting(100, ge=1, description="Webhooks that there may be.")
    poll_s: float = setting(1.0, ge=0.02, description="How often new events and due deliveries are looked for.")
    timeout_s: float = setting(15.0, ge=0.1, le=300.0, description="Time in which a receiver must answer.")
    parallel: int = setting(32, ge=1, le=1000, description="Messages that one process sends at once.")
    per_hook: int = setting(4, ge=1, le=100, description="Messages that are under way to one webhook at once.")
    waiting: int = setting(
        10_000,
        ge=1,
        description="Deliveries of one webhook that may wait; later events are queued when there is room.",
    )
    keep_days: float = setting(30.0, gt=0.0, description="Age up to which deliveries that are over are kept.")
    allow_networks: tuple[Network, ...] = setting(
        (), description="Private networks (CIDR, comma-separated) that messages may be sent to; none otherwise."
    )


class ZimitSettings(SettingGroup):
    """How crawls with zimit are run on this machine. A job's configuration can never say these things itself."""

    command: str = setting("archive-tool", description="The program that runs them; it may be several words.")
    image: str | None = setting(None, description="Container image; the tool's own default if left out.")
    vpn_command: str | None = setting(None, description="Command that changes the VPN exit; found on PATH, no shell.")
    flags: tuple[str, ...] = setting(
        (), description="zimit flags (comma-separated) that may pass besides the built-in list."
    )
    store_root: Path | None = setting(
        None, description="Mounted storage of jobs; nothing is written without its sentinel."
    )
    memory: str = setting("4g", description="Memory of a container, for example 8g.")
    cpus: float = setting(1.5, gt=0.0, le=1024.0, description="CPU cores of a container.")
    accept_unguarded: bool = setting(
        False,
        description="Allow zimit in a strict environment: its requests pass no address guard and no pace per request, "
        "and it crawls where robots.txt cannot be fetched.",
    )
    stop_s: float = setting(150.0, ge=1.0, description="Time that a tool has to stop its container and end.")
    domain_wait_s: float = setting(
        30.0, ge=0.0, le=45.0, description="How long a run waits for a host that a crawl asks; then it is tried later."
    )


class RecoverySettings(SettingGroup):
    """When `holdfast auto-recover` helps a crawl that does not get on, and when it leaves it alone."""

    stalled_s: float = setting(3600.0, ge=1.0, description="Time without a new page after which a crawl is stalled.")
    guard_s: float = setting(600.0, ge=0.0, description="Time after a start or a restart in which nothing is done.")
    per_day: int = setting(3, ge=0, description="Restarts of one job in 24 hours.")
    breaker_pages: int = setting(10, ge=0, description="New pages below which a restart was in vain.")
    breaker_times: int = setting(3, ge=1, description="Restarts in vain, in a row, after which a job is left alone.")
    slow_pages_per_minute: float = setting(2.0, ge=0.0, description="Rate below which a crawl is slow.")
    slow_looks: int = setting(6, ge=1, description="Looks in a row that find a crawl slow before it is restarted.")
    deploy_lock_s: float = setting(7200.0, ge=0.0, description="How long a `deploy.lock` in the data directory holds.")
    keep_running: int = setting(1, ge=0, description="Crawls to keep going: below it, backoffs are cut short.")


class StorageSettings(SettingGroup):
    """When storage counts as dead, what may be done about it, and when directories of old crawls are cleaned up."""

    probe_s: float = setting(10.0, ge=0.1, description="Time in which a path must answer.")
    dead_s: float = setting(120.0, ge=0.0, description="Time that a path is dead before something is done about it.")
    confirmations: int = setting(2, ge=1, description="Looks in a row that find a path dead before that.")
    cooldown_s: float = setting(900.0, ge=0.0, description="Time after an action in which nothing is done.")
    per_hour: int = setting(2, ge=0, description="Actions in an hour, on all paths together.")
    per_day: int = setting(6, ge=0, description="Actions in 24 hours, on all paths together.")
    per_job: int = setting(3, ge=0, description="Actions in 24 hours that concern one job.")
    unmount_command: str | None = setting(None, description="Lets go of a dead mount; `{mount}` is its path, no shell.")
    mount_command: str | None = setting(None, description="Mounts it again; `{mount}` is its path, no shell.")
    command_s: float = setting(60.0, ge=1.0, description="Time that either command has.")
    clean_days: float = setting(
        14.0, ge=0.0, description="Age from which an indexed crawl's remains may be cleaned up."
    )
    clean_keep: int = setting(2, ge=0, description="Newest crawls of each source that are left as they are.")
    clean_percent: float = setting(
        80.0, ge=0.0, le=100.0, description="Use of the disk from which remains are cleaned."
    )


class Settings(SettingGroup):
    """All of it. `holdfast settings` prints what is in force."""

    extra: ClassVar[str] = "ignore"

    def __init__(self, **given: Any) -> None:
        """Read what is set anywhere; what is given here wins."""
        origins: Origins = {}
        super().__init__(**gather(type(self).model_fields, given, origins))
        # Past `__setattr__`, which refuses every change.
        self.__dict__["origins"] = origins

    origins: ClassVar[Origins] = {}
    """Where what is set was set, by name in dots; what is not in it has its default."""

    home: Path = setting(Path("holdfast-home"), description="The data directory: database, WARC files, run files.")
    warc_root: Path | None = setting(
        None, description="Where WARC files lie; `warcs` in the data directory if left out, else linked there."
    )
    database_url: str | None = setting(
        None, description="PostgreSQL address; empty means SQLite in the data directory."
    )
    redis_url: Secret | None = setting(
        None,
        description="Redis or Valkey, redis://host:6379/0: one count of requests for all processes that use it. "
        "Nothing is lost without it.",
    )
    contact: str | None = setting(None, description="Who answers for a crawl: an e-mail address or a web address.")
    user_agent: str | None = setting(None, description="Own user agent; the product's token and the contact are added.")
    allow_networks: tuple[Network, ...] = setting(
        (), description="Private networks (CIDR, comma-separated) that may be crawled; nothing private otherwise."
    )
    log_level: str = setting(
        "INFO",
        pattern="(?i)^(debug|info|warning|error|critical)$",
        description="Least level of events that are written.",
    )
    failpoint: str | None = setting(None, description="Testing only: NAME:kill, NAME:raise or NAME:sleep.")
    lease: LeaseSettings = LeaseSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    fetch: FetchSettings = FetchSettings()
    parse: ParseSettings = ParseSettings()
    warc: WarcSettings = WarcSettings()
    index: IndexSettings = IndexSettings()
    engine: EngineSettings = EngineSettings()
    traps: TrapSettings = TrapSettings()
    disk: DiskSettings = DiskSettings()
    zimit: ZimitSettings = ZimitSettings()
    recovery: RecoverySettings = RecoverySettings()
    storage: StorageSettings = StorageSettings()
    api: ApiSettings = ApiSettings()
    auth: AuthSettings = AuthSettings()
    exports: ExportSettings = ExportSettings()
    replay: ReplaySettings = ReplaySettings()
    jobs: JobSettings = JobSettings()
    worker: WorkerSettings = WorkerSettings()
    feeds: FeedSettings = FeedSettings()
    webhooks: WebhookSettings = WebhookSettings()
    uploads: UploadSettings = UploadSettings()

    @property
    def database(self) -> str:
        """The address of the database in use."""
        return self.database_url or f"sqlite:///{(self.home / 'holdfast.db').resolve()}"

    @property
    def replay_origin(self) -> str:
        """The origin that archived pages are shown at, without a slash at its end."""
        return self.replay.origin or f"http://{REPLAY_HOST}:{self.api.port}"

    @property
    def site_origin(self) -> str:
        """The origin that readers call the application by, without a slash at its end."""
        return (self.api.site_url or f"http://127.0.0.1:{self.api.port}").rstrip("/")


def load(**overrides: object) -> Settings:
    """Return the settings in force; Invalid names the setting that is wrong."""
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except SettingRefused as exc:
        name = PREFIX + "_".join(exc.path).upper()
        raise Invalid(f"the setting {name} cannot be used: {exc.message}; see docs/settings.md") from exc
    except ValueError as exc:
        raise Invalid(f"the settings cannot be read: {exc}; see docs/settings.md") from exc
