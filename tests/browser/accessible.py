"""What axe finds on a page: rules of accessibility that a browser can check, such as contrast and names."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

GRAVE = ("serious", "critical")
PHONE = {"width": 375, "height": 812}


def findings(page: Page) -> list[str]:
    """The serious and critical findings, each with its rule, the part of the page and what is wrong with it."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']} ({one['impact']}): {node['target']} {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]
