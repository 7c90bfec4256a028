"""The site of `make docs` in a real browser, opened from a folder: search, phones, contrast.

The fixture of pages fails a test whose page asks another host for anything.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import SCREENSHOTS

PAGES = (
    "index",
    "tutorial",
    "concepts",
    "comparison",
    "commands",
    "sql",
    "reference/table",
    "project/readme",
    "adr/index",
)
CONTRAST = """() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number)
  const mixed = (alpha, top, below) => top.slice(0, 3).map((one, place) => one * alpha + below[place] * (1 - alpha))
  const over = (top, below) => mixed(top[3] ?? 1, top, below)
  const light = rgb => {
    const linear = one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4
    const [r, g, b] = rgb.map(one => linear(one / 255))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const ground = element => {
    const layers = []
    for (let one = element; one; one = one.parentElement) layers.push(parts(getComputedStyle(one).backgroundColor))
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255])
  }
  const found = {}
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter(one => one.nodeType === 3).map(one => one.data.trim()).join("")
    const box = element.getBoundingClientRect(), style = getComputedStyle(element)
    if (!text || !box.width || !box.height || element.closest("svg, [hidden]")) continue
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue
    const back = ground(element), front = over(parts(style.color), back)
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a)
    const large = parseFloat(style.fontSize) >= 24
    if ((high + 0.05) / (low + 0.05) < (large ? 3 : 4.5))
      found[element.className + " " + style.color] = text.slice(0, 30) + " " + ((high + 0.05) / (low + 0.05)).toFixed(2)
  }
  return found
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_every_kind_of_page_can_be_read(site: Path, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    scheme = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'")
    faint, wide = {}, []
    for name in PAGES:
        page.goto((site / f"{name}.html").as_uri())
        expect(page.locator("h1").first).to_be_visible()
        page.screenshot(path=SCREENSHOTS / f"docs-{name.replace('/', '-')}-{width}-{scheme}.png")
        faint |= {f"{name}: {where}": what for where, what in page.evaluate(CONTRAST).items()}
        if page.evaluate("document.scrollingElement.scrollWidth > innerWidth"):
            wide.append(name)
    assert faint == {}
    assert wide == []


def test_the_search_works_from_a_folder(site: Path, page: Page) -> None:
    page.goto((site / "index.html").as_uri())
    page.locator("input[name=query]").click()
    page.keyboard.type("overshadowed")
    expect(page.locator(".md-search-result__item").first).to_be_visible()
    page.locator(".md-search-result__item a").first.click()
    expect(page.locator("article")).to_contain_text("vershadow")
