"""The sources that ship with the product: the three of documents 000 and 001, ready for an annual campaign.

They crawl natively, which needs no service; `backend: zimit` is one word away, and the options for it are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

RESILIENT: Final[dict[str, Any]] = {
    "cleanup": False,
    "overwrite": False,
    "skip_final_build": True,
    "enable_monitoring": True,
    "enable_adaptive_workers": True,
    "enable_adaptive_restart": True,
    "enable_vpn_rotation": False,
    "initial_workers": 2,
    "log_level": "INFO",
    "stall_timeout_minutes": 60,
    "docker_shm_size": "1g",
    "error_threshold_timeout": 50,
    "error_threshold_http": 50,
    "max_container_restarts": 20,
    "backoff_delay_minutes": 2,
}
"""HA-021, with document 001's annual minima: 20 restarts, thresholds of 50, 2 minutes between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A source as it ships."""

    code: str
    name: str
    base_url: str
    description: str
    config: dict[str, Any]
    unconfirmed: tuple[str, ...]
    """What no document says and somebody has to look at before a campaign; changed with `holdfast source edit`."""


def _config(seeds: list[str], include: list[str], *, scope: str = "page") -> dict[str, Any]:
    """Return a configuration without caps on pages or depth: scope rules alone bound an annual crawl."""
    return {
        "seeds": seeds, "scope": scope, "include": include, "max_depth": -1, "name_template": "{code}-{date:%Y%m%d}",
        "schedule_hint": "annual", "zimit": {"tool_options": dict(RESILIENT)},
    }  # fmt: skip


PRESETS: Final = (
    Preset(
        code="hc",
        name="Health Canada",
        base_url="https://www.canada.ca/en/health-canada.html",
        description="Federal health department of Canada, in English and French.",
        config=_config(
            ["https://www.canada.ca/en/health-canada.html", "https://www.canada.ca/fr/sante-canada.html"],
            [r"^https?://www\.canada\.ca/(en/health-canada|fr/sante-canada)(/|\.html|$)"],
        ),
        unconfirmed=("the French seed", "the scope rules"),
    ),
    Preset(
        code="phac",
        name="Public Health Agency of Canada",
        base_url="https://www.canada.ca/en/public-health.html",
        description="Federal public health agency of Canada, in English and French.",
        config=_config(
            ["https://www.canada.ca/en/public-health.html", "https://www.canada.ca/fr/sante-publique.html"],
            [r"^https?://www\.canada\.ca/(en/public-health|fr/sante-publique)(/|\.html|$)"],
        ),
        unconfirmed=("the addresses of both seeds (document 000 has its home page, without one)", "the scope rules"),
    ),
    Preset(
        code="cihr",
        name="Canadian Institutes of Health Research",
        base_url="https://cihr-irsc.gc.ca/e/193.html",
        description="Federal funding agency for health research in Canada, in English and French.",
        config=_config(["https://cihr-irsc.gc.ca/e/193.html", "https://cihr-irsc.gc.ca/f/193.html"], [], scope="host"),
        unconfirmed=("both seeds", "the scope: the whole host", "all but the code and the place in the order"),
    ),
)
"""In the order in which an annual campaign queues them (document 001)."""
