"""`holdfast seed-sources`: the sources that ship with the product. What is there already stays as its keeper has it."""

from __future__ import annotations

import json as jsonlib

from holdfast import config
from holdfast.cli.options import AsJson, Home
from holdfast.sources import registry
from holdfast.sources.presets import PRESETS
from holdfast.wiring.jobs import open_jobs


def seed_sources(json: AsJson = False, home: Home = None) -> None:
    """Add the sources hc, phac and cihr with the annual resiliency defaults, where they are missing.

    What no document says about them is told: look at it before a campaign.

    Acts at once: it only adds what is missing.
    Example: holdfast seed-sources
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        added = registry.seed_presets(session, jobs.clock)
    there = [preset.code for preset in PRESETS if preset.code not in added]
    unconfirmed = {preset.code: preset.unconfirmed for preset in PRESETS if preset.code in added}
    if json:
        print(jsonlib.dumps({"added": added, "there": there, "unconfirmed": unconfirmed}))
        return
    print(f"added: {', '.join(added) or 'none'}; there already: {', '.join(there) or 'none'}")
    for code, told in unconfirmed.items():
        print(f"{code}: look at it before a campaign (holdfast source show {code}); no document confirms")
        print("\n".join(f"  {one}" for one in told))
