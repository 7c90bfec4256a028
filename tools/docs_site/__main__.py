"""Build the documentation as a site in build/docs/site: `python -m tools.docs_site` (`make docs`).

1. Links between pages of the repository are checked: files, and headings. 2. Pages are written to build/docs/pages,
with those that are made: commands, and the Python interface. 3. The site is built from them; a warning is an error.
`--links` stops after the first step, which takes a second and needs nothing but the library.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.docs_site.commands import command_page
from tools.docs_site.markdown import headings
from tools.docs_site.pages import ROOT, broken, write_pages
from tools.docs_site.reference import reference_pages

HERE = Path(__file__).resolve().parent


def main() -> int:
    """The status of the process: 1 if a link is broken or the site cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs_site", description="Build the documentation as a site.")
    parser.add_argument("--links", action="store_true", help="check links between pages, and stop")
    parser.add_argument("--into", type=Path, default=ROOT / "build/docs", help="folder for pages and site")
    arguments = parser.parse_args()
    made = {"commands.md": command_page(), **reference_pages()}
    wrong = list(broken(made=made))
    print("".join(f"docs: {line}\n" for line in wrong), end="", file=sys.stderr)
    if wrong or arguments.links:
        return 1 if wrong else 0
    return build(arguments.into, made)


def build(into: Path, made: dict[str, str]) -> int:
    """Write the pages and build the site of them; the status of the builder."""
    write_pages(into / "pages", made)
    for name in ("extra.css", "iframe-worker.js"):
        shutil.copyfile(HERE / name, into / "pages" / name)
    (into / "mkdocs.yml").write_text(settings(), encoding="utf-8")
    # Material prints advice on another product at each start.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--config-file",
        str(into / "mkdocs.yml"),
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    if not done.returncode:
        print(f"docs: open {into / 'site/index.html'}")
    return done.returncode


def settings() -> str:
    """The builder's settings, with every decision among the pages."""
    text = (HERE / "mkdocs.yml").read_text(encoding="utf-8").replace("!ROOT", str(ROOT))
    for path in sorted((ROOT / "docs/adr").glob("0*.md")):
        title = next(headings(path.read_text(encoding="utf-8"))).replace("`", "")
        text += f'      - "{title}": adr/{path.name}\n'
    return text


if __name__ == "__main__":
    sys.exit(main())
