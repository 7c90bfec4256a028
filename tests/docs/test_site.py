"""The site of `make docs`: links, what has to be on it, and that it asks nobody for anything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

import lakehouse
from lakehouse.cli import app
from tests.docs.prepared import ROOT
from tools.docs_site.commands import command_names, command_page
from tools.docs_site.pages import broken, place_of, sources
from tools.docs_site.pictures import FOLDER, draw_all
from tools.docs_site.reference import PAGES, reference_pages

MADE = {"commands.md": command_page(), **reference_pages()}


def test_every_link_leads_to_a_file_and_a_heading() -> None:
    assert list(broken(made=MADE)) == []


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("[a](gone.md)", "no file gone.md"),
        ("[a](b.md#gone)", "no heading #gone in docs/b.md"),
        ("[a](#gone)", "no heading #gone in docs/a.md"),
        ("[a](b.md#twice)", "no heading #twice in docs/b.md"),
        ("![a](gone.svg)", "no file gone.svg"),
        ("[a][b]", r"write \[a\]\[b\] as"),
    ],
)
def test_a_broken_link_is_named(tmp_path: Path, link: str, said: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(
        f"# A\n\n`[x](code.md)` [b](b.md#the-end) {link}\n\n```text\n[x](code.md)\n```\n"
    )
    (tmp_path / "docs/b.md").write_text("# B\n\n## The end\n\n## Twice\n\n## Twice\n")
    (found,) = broken(tmp_path, ["docs/a.md", "docs/b.md"])
    assert re.search(said, found)


def test_the_site_is_built_in_strict_mode_with_every_page(site: Path) -> None:
    pages = [str(place_of(page)) for page in sources()] + list(MADE)
    expected = {re.sub(r"(^|/)README\.md$", r"\1index.md", page).replace(".md", ".html") for page in pages}
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    assert expected <= built


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|link|img|iframe|source|video)\b[^>]*?\b(?:src|href)=\"?((?:https?:)?//[^\s\">]+)")
    found = {
        (path.relative_to(site).as_posix(), url)
        for path in site.rglob("*.html")
        for url in loads.findall(path.read_text(encoding="utf-8"))
    }
    assert found == set()
    styles = [
        path for path in site.rglob("*.css") if re.search(r"(?:url\(|@import )[\"']?(?:https?:)?//", path.read_text())
    ]
    assert styles == []


def test_every_public_name_is_on_a_page_with_what_it_says(site: Path) -> None:
    missing = []
    for name in lakehouse.__all__:
        (page,) = [place for place, text in MADE.items() if f"::: lakehouse.{name}\n" in text]
        if f'id="lakehouse.{name}"' not in (site / page.replace(".md", ".html")).read_text(encoding="utf-8"):
            missing.append(name)
    assert missing == []
    assert {name for page in PAGES.values() for name in page.names} <= set(lakehouse.__all__)
    table = (site / "reference/table.html").read_text(encoding="utf-8")
    assert 'id="lakehouse.Table.append"' in table  # what it inherits
    assert "&gt;&gt;&gt;" in table
    assert "<blockquote" not in table  # what Markdown makes of an example that is not fenced


def test_every_command_and_option_is_on_the_page_of_commands() -> None:
    page = MADE["commands.md"]
    assert [name for name in command_names() if f"\n## {name}\n" not in page] == []
    (run,) = [one for one in get_command(app).commands.values() if one.name == "append"]  # type: ignore[attr-defined]
    for option in run.params:
        if option.opts[-1].startswith("--"):
            assert option.opts[-1] in page.partition("\n## append\n")[2].partition("\n## ")[0]


def test_the_pictures_are_what_the_library_says() -> None:
    """Draw them again by: python -m tools.docs_site.pictures."""
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")} == draw_all()


def test_the_figures_of_the_comparison_are_the_measured_ones() -> None:
    measured = (ROOT / "benchmarks/README.md").read_text(encoding="utf-8").partition("<!-- peers: begin -->")[2]
    shown = (ROOT / "docs/comparison.md").read_text(encoding="utf-8").partition("## Figures")[2]
    wrong = []
    for way in ("In process", "By Spark"):
        known = rows_of(measured.partition(f"**{way}**")[2])
        told = rows_of(shown.partition(f"{way}:")[2])
        assert told
        wrong += [f"{way}, {work}: {cells}" for work, cells in told.items() if known[work][: len(cells)] != cells]
    assert wrong == []


def rows_of(text: str) -> dict[str, list[str]]:
    """The rows of the first table in a text, by their first cell."""
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]
    return {cells[0]: cells[1:] for cells in rows[2:]}
