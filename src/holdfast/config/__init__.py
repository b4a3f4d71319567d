"""Every setting, grouped and documented. Read from `HOLDFAST_*` variables, a `.env` file, or a TOML file.

A group's field is spelled `HOLDFAST_<GROUP>_<FIELD>` in the environment and `[group] field = …` in TOML. Times and
limits that only tests change are not settings: see `timings.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

from holdfast.config.model import (
    PREFIX,
    RATES,
    Nameserver,
    Network,
    Origins,
    Proxy,
    Rate,
    Secret,
    SettingGroup,
    SettingRefused,
    gather,
    setting,
)
from holdfast.config.removed import take_removed
from holdfast.config.timings import Timings
from holdfast.errors import Invalid

__all__ = ["PREFIX", "Network", "SettingGroup", "Settings", "Timings", "load"]


class PolitenessSettings(SettingGroup):
    """Request rate and politeness limits per domain."""

    delay_s: float = setting(
        1.0,
        ge=0.0,
        description="Seconds between starts of two requests to one domain; a source's delay_s and --delay win.",
    )
    max_delay_s: float = setting(300.0, ge=1.0, description="Cap on a robots.txt crawl-delay; logged when it applies.")
    retries: int = setting(3, ge=0, description="How often a page is retried after a transient failure.")


class FetchSettings(SettingGroup):
    """Limits of a single request."""

    deadline_s: float = setting(30.0, ge=0.2, description="Total time for one request.")
    body_bytes: int = setting(
        100 * 1024**2, ge=1024, description="Largest body that is kept whole; the rest is cut off."
    )
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


class WarcSettings(SettingGroup):
    """Limits at which a WARC file is full."""

    bytes: int = setting(10**9, ge=4096, description="Size at which a file is sealed.")


class IndexSettings(SettingGroup):
    """Indexing of captures, and how much of the machine it may use."""

    nice: int = setting(
        10, ge=0, le=19, description="Priority that indexing gives up, so that readers and crawls come first; 0 none."
    )


class EngineSettings(SettingGroup):
    """Intervals of a crawl process."""

    domains: int = setting(1000, ge=1, description="Domains that one process asks at the same time.")
    known_urls: int = setting(1_000_000, ge=1000, description="URLs that a process remembers to spare the database.")


class DiskSettings(SettingGroup):
    """Limits at which the disk counts as full: no new work starts below either of them."""

    free_bytes: int = setting(2 * 1024**3, ge=0, description="Free bytes to keep.")
    free_percent: float = setting(5.0, ge=0, le=90, description="Free share of the disk to keep.")


DATABASE_FILE = "holdfast.db"
"""The SQLite file in the data directory, used unless another database is configured."""
REPLAY_HOST = "replay.localhost"
"""The host of archived pages unless an origin is configured; browsers resolve it to the local machine."""
_PRINTED = "_HOLDFAST_REMOVED_SETTINGS_PRINTED"
_RELAXED = ("development", "dev", "local", "test", "testing", "ci")


class ApiSettings(SettingGroup):
    """HTTP server: published content, allowed clients and rate limits."""

    host: str = setting("127.0.0.1", description="Address to listen on; without an admin token only loopback.")
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
    hsts: bool = setting(True, description="Send Strict-Transport-Security; browsers obey it over https only.")
    connections_per_address: int = setting(
        100,
        ge=1,
        description="Connections that one address (IPv6: /64) may hold, of 1,000 in all; behind a trusted proxy, "
        "requests under way of the address that it forwards.",
    )
    rate_limiting: bool = setting(True, description="Whether requests are limited per address and minute.")
    rates: tuple[Rate, ...] = setting(
        (),
        description="Requests a minute that differ from the defaults, as search=30,replay=6000; comma-separated. "
        f"Defaults: {', '.join(f'{kind}={number}' for kind, number in RATES.items())}.",
    )
    exports: bool = setting(True, description="Whether exports are offered.")
    exports_max_limit: int = setting(10_000, ge=1, description="Most rows of one export.")
    changes: bool = setting(True, description="Whether change tracking is shown.")
    compare_live: bool = setting(
        False, description="Whether everybody may compare a capture with the live page; operators always may."
    )
    upkeep: bool = setting(
        True,
        description="Whether the server itself takes new captures into search, compares them, and runs operations that "
        "were requested over HTTP.",
    )
    usage: bool = setting(True, description="Whether daily usage counts are kept and shown; no reader is followed.")

    def per_minute(self, kind: str) -> int:
        """Return the requests allowed per minute for a key of `RATES`."""
        return dict(self.rates).get(kind, RATES[kind])

    @property
    def strict(self) -> bool:
        """Whether the server refuses to start without an admin token.

        Unknown environment names count as production: `prod` and `live` are strict.
        """
        return self.environment.strip().lower() not in _RELAXED


class AuthSettings(SettingGroup):
    """Sign-in methods, users and session lifetimes."""

    session_hours: float = setting(24.0, gt=0.0, le=720.0, description="How long a browser stays signed in.")
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
    oidc_issuer: str | None = setting(
        None,
        pattern=r"^https?://[^?#\s]+$",
        description="Identity provider (OpenID Connect) to sign in with, as https://login.example.org; empty: none.",
    )
    oidc_client_id: str | None = setting(None, description="Client id of this server at the identity provider.")
    oidc_client_secret: Secret | None = setting(
        None, min_length=1, description="Its secret there; left out for a public client."
    )
    oidc_name: str = setting("single sign-on", min_length=1, description="Name of the provider on the sign-in page.")
    oidc_scopes: tuple[str, ...] = setting(
        ("openid", "profile"), description="Scopes to ask it for; comma-separated, openid among them."
    )
    oidc_allow_networks: tuple[Network, ...] = setting(
        (), description="Private networks (CIDR, comma-separated) that the identity provider may be in."
    )
    oidc_name_claim: str = setting(
        "preferred_username", min_length=1, description="Claim of the ID token that a new user is named after."
    )
    oidc_role_claim: str = setting("groups", min_length=1, description="Claim that says what a user may do.")
    oidc_roles: tuple[str, ...] = setting(
        (),
        description="Roles of its values, as archivists=operator,admins=administrator; the highest match counts.",
    )
    oidc_default_role: str | None = setting(
        None,
        pattern=r"^(member|observer|operator|administrator)$",
        description="Role of a user without a match; without it such a user is rejected.",
    )


class ExportSettings(SettingGroup):
    """Disk use of exports."""

    cache_bytes: int = setting(
        2 * 1024**3,
        ge=0,
        description="Size of `cache/wacz`, the indexes of packages: beyond it, the least recently requested and "
        "unused ones are removed; the newest stays whatever its size. `cache/editions`, the copies of "
        "editions' files without withdrawn captures, has the same size for itself.",
    )


class UploadSettings(SettingGroup):
    """Limits of uploads for import."""

    max_bytes: int = setting(100 * 1024**3, ge=1, description="Largest file that may be uploaded.")


class ReplaySettings(SettingGroup):
    """Address of archived pages: never the application's own origin."""

    origin: str | None = setting(
        None,
        pattern=r"^https?://[^/?#\s]+$",
        description="Origin of archived pages, as https://replay.example.org; replay.localhost if left out.",
    )
    scripts: bool = setting(True, description="Whether archived scripts may run, in a sandbox without any authority.")
    renderer_dir: Path | None = setting(
        None,
        description="Folder with `ui.js` and `sw.js` of ReplayWeb.page: then it is offered as a second way to show a "
        "public capture (docs/replay.md).",
    )


class JobSettings(SettingGroup):
    """Scheduling and locking of jobs, and retention of their history."""

    auto_interval_minutes: int = setting(1440, ge=1, description="Interval of jobs that are made for enabled sources.")
    history_rows: int = setting(100, ge=1, description="Newest executions of a job whose log and metrics are kept.")
    history_days: float = setting(30.0, gt=0.0, description="Age up to which an execution's log and metrics are kept.")
    events_days: float = setting(7.0, gt=0.0, description="Age up to which events are kept for streaming.")
    log_lines: int = setting(50_000, ge=100, description="Lines of one execution's log; the rest is counted.")
    log_level: str = setting(
        "info", pattern="^(debug|info|warning|error)$", description="Lowest level of lines in an execution's log."
    )


class FeedSettings(SettingGroup):
    """Discovery and polling of feeds and sitemaps, for sources with `feeds` enabled."""

    poll: bool = setting(True, description="Whether feeds are polled at all; if off, no source has a feed job.")
    discovery: bool = setting(
        True, description="Whether start pages, usual places and robots.txt are searched for feeds."
    )
    interval_minutes: int = setting(15, ge=1, description="Time between two polls of a source's feeds and sitemaps.")
    search_hours: float = setting(24.0, gt=0.0, description="Time after which a source is searched for feeds again.")
    max_age_days: float = setting(30.0, gt=0.0, description="Items whose date is older than this are left to crawls.")


class WorkerSettings(SettingGroup):
    """Concurrency of one worker."""

    concurrency: int = setting(1, ge=1, le=64, description="Executions that one worker runs at once.")
    processes: int = setting(1, ge=1, le=64, description="Crawl processes of one execution.")
    max_time_s: float = setting(
        30 * 86_400.0, ge=0.0, description="Longest that one execution may be at work, in seconds; 0: no limit."
    )


class WebhookSettings(SettingGroup):
    """Delivery of events to other systems."""

    deliver: bool = setting(
        True, description="Whether servers and workers of this machine send what waits; off, others have to."
    )
    allow_networks: tuple[Network, ...] = setting(
        (), description="Private networks (CIDR, comma-separated) that messages may be sent to; none otherwise."
    )


class ZimitSettings(SettingGroup):
    """How this machine runs zimit crawls. A job's configuration can never set these."""

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


class RecoverySettings(SettingGroup):
    """When `holdfast auto-recover` intervenes in a stalled crawl, and when it does not."""

    stalled_s: float = setting(3600.0, ge=1.0, description="Time without a new page after which a crawl is stalled.")
    keep_running: int = setting(1, ge=0, description="Crawls to keep going: below it, backoffs are cut short.")


class StorageSettings(SettingGroup):
    """When storage counts as unreachable, what recovery may do, and when old crawl directories are cleaned up."""

    dead_s: float = setting(120.0, ge=0.0, description="Time that a path is dead before something is done about it.")
    unmount_command: str | None = setting(None, description="Unmounts a dead mount; `{mount}` is its path, no shell.")
    mount_command: str | None = setting(None, description="Mounts it again; `{mount}` is its path, no shell.")
    clean_days: float = setting(
        14.0, ge=0.0, description="Age from which an indexed crawl's remains may be cleaned up."
    )


class Settings(SettingGroup):
    """All settings. `holdfast settings` prints the effective values."""

    extra: ClassVar[str] = "ignore"

    def __init__(self, *, timings: Any = None, **given: Any) -> None:
        origins: Origins = {}
        values = gather(type(self).model_fields, given, origins)
        removed = take_removed(values)
        super().__init__(**values)
        # Past `__setattr__`, which refuses every change.
        self.__dict__.update(origins=origins, removed=removed, timings=timings or Timings.read(os.environ))

    timings: ClassVar[Timings]
    """Times and limits that only tests change."""

    removed: ClassVar[tuple[str, ...]] = ()
    """One line for each removed setting that is still set and was ignored."""

    origins: ClassVar[Origins] = {}
    """Where each setting was set, by dotted name; missing names have their default."""

    home: Path = setting(Path("holdfast-home"), description="The data directory: database, WARC files, run files.")
    warc_root: Path | None = setting(
        None, description="Folder of WARC files; by default `warcs` in the data directory, otherwise linked there."
    )
    database_url: str | None = setting(
        None, description="PostgreSQL address; empty means SQLite in the data directory."
    )
    redis_url: Secret | None = setting(
        None,
        description="Redis or Valkey, redis://host:6379/0: one count of requests for all processes that use it. "
        "Nothing is lost without it.",
    )
    contact: str | None = setting(None, description="Contact for a crawl: an e-mail address or a web address.")
    user_agent: str | None = setting(None, description="Own user agent; the product's token and the contact are added.")
    allow_networks: tuple[Network, ...] = setting(
        (), description="Private networks (CIDR, comma-separated) that may be crawled; nothing private otherwise."
    )
    log_level: str = setting(
        "INFO",
        pattern="(?i)^(debug|info|warning|error|critical)$",
        description="Lowest level of events that are logged.",
    )
    politeness: PolitenessSettings = PolitenessSettings()
    fetch: FetchSettings = FetchSettings()
    warc: WarcSettings = WarcSettings()
    index: IndexSettings = IndexSettings()
    engine: EngineSettings = EngineSettings()
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
        """The URL of the database in use."""
        return self.database_url or f"sqlite:///{(self.home / DATABASE_FILE).resolve()}"

    @property
    def replay_origin(self) -> str:
        """The origin of archived pages, without a trailing slash."""
        return self.replay.origin or f"http://{REPLAY_HOST}:{self.api.port}"

    @property
    def site_origin(self) -> str:
        """The public origin of the application, without a trailing slash."""
        return (self.api.site_url or f"http://127.0.0.1:{self.api.port}").rstrip("/")


def load(**overrides: object) -> Settings:
    """Return the effective settings and print one line for each removed one. Raise Invalid, naming the bad setting."""
    try:
        settings = Settings(**{name: value for name, value in overrides.items() if value is not None})
    except SettingRefused as exc:
        name = PREFIX + "_".join(exc.path).upper()
        raise Invalid(f"the setting {name} cannot be used: {exc.message}; see docs/settings.md") from exc
    except ValueError as exc:
        raise Invalid(f"the settings cannot be read: {exc}; see docs/settings.md") from exc
    if settings.api.strict and settings.timings != Timings():
        raise Invalid(
            f"HOLDFAST_TIMINGS_* is for tests, and HOLDFAST_API_ENVIRONMENT is {settings.api.environment!r}; unset it"
        )
    # Child processes inherit the variables: the line is printed once.
    if settings.removed and not os.environ.get(_PRINTED):
        os.environ[_PRINTED] = "1"
        for line in settings.removed:
            print(f"holdfast: {line}", file=sys.stderr)
    return settings
