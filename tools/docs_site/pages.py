"""The site's pages out of the repository's: where each goes, and what its links become."""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.docs_site.markdown import anchors, links, references, without_marks

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "GLOSSARY.md": "glossary.md",
    "benchmarks/README.md": "project/measurements.md",
}
"""By the path of a page outside docs/ its path in the site; a page of docs/ keeps its own, without that folder."""


def sources(root: Path = ROOT) -> list[str]:
    """The Markdown pages of the repository that are documentation, by their paths in it."""
    return [*PLACES, *sorted(path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md"))]


def place_of(path: str) -> str | None:
    """Where a file of the repository is in the site; None if it is not in it."""
    if path.startswith("docs/") and path.endswith((".md", ".svg", ".png")):
        return path.removeprefix("docs/")
    if path.startswith("benchmarks/") and path.endswith(".svg"):
        return path.replace("benchmarks/", "project/", 1)
    return PLACES.get(path)


def broken(root: Path = ROOT, pages: list[str] | None = None, made: dict[str, str] | None = None) -> Iterator[str]:
    """What is wrong with links inside of the repository: files and anchors that are not there.

    ``made`` are pages of the site that no file of the repository holds, by their paths in docs/.
    """
    texts = {page: (root / page).read_text(encoding="utf-8") for page in pages or sources(root)}
    generated = {f"docs/{place}": text for place, text in (made or {}).items()}
    for page, text in texts.items():
        for name in references(text):
            yield f"{page}: write {name} as [text](target)"
        for link in links(text):
            if _is_outside(link.target):
                continue
            file, _, anchor = link.target.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page
            if path not in generated and not (root / path).exists():
                yield f"{page}:{link.line}: no file {file}"
            elif anchor and path.endswith(".md"):
                there = generated.get(path) or (root / path).read_text(encoding="utf-8")
                if anchor not in anchors(there) and f'id="{anchor}"' not in there:
                    yield f"{page}:{link.line}: no heading #{anchor} in {path}"


def write_pages(into: Path, made: dict[str, str], root: Path = ROOT) -> None:
    """Write all pages and pictures of the site below a folder, which is emptied first."""
    shutil.rmtree(into, ignore_errors=True)
    for page in sources(root):
        text = (root / page).read_text(encoding="utf-8")
        _write(into / str(place_of(page)), without_marks(_moved(text, page)))
    for place, text in made.items():
        _write(into / place, text)
    for path in [*(root / "docs").rglob("*.svg"), *(root / "benchmarks").rglob("*.svg")]:
        place = into / str(place_of(path.relative_to(root).as_posix()))
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def _moved(text: str, page: str) -> str:
    """A page with links between places of the site; a link to source code becomes its path."""
    own = str(place_of(page))
    for link in reversed(links(text)):
        if _is_outside(link.target) or link.target.startswith("#"):
            continue
        file, mark, anchor = link.target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), file))
        place = place_of(path)
        if place is None and path.endswith(".md"):
            place = path.removeprefix("docs/")
        if place is None:
            index = place_of(f"{path}/README.md")
            new = f"{link.label} (`{path}`)" if index is None or not (ROOT / path / "README.md").exists() else None
            place = index
        else:
            new = None
        if new is None:
            target = posixpath.relpath(str(place), posixpath.dirname(own) or ".")
            new = f"{'!' if link.is_image else ''}[{link.label}]({target}{mark}{anchor})"
        text = text[: link.start] + new + text[link.end :]
    return text


def _is_outside(target: str) -> bool:
    return bool(re.match(r"[a-z][a-z0-9+.-]*:", target))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
