"""Hooks of mkdocs: what makes the site of the pages of this repository.

`make site` builds it into build/site.  Pages that lie outside docs/, reference pages and the gallery are added.
Nothing is fetched when somebody reads.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = ["on_files", "on_page_markdown", "on_post_build", "on_post_page"]

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # mkdocs loads this file by its path

OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
"""File of the repository -> page of the site."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are written on the way."""
    from mkdocs.structure.files import File

    from docs.reference import PAGES, gallery_pages

    texts = {page: (ROOT / file).read_text(encoding="utf-8") for file, page in OUTSIDE.items()}
    texts |= {place: write() for place, write in PAGES.items()} | gallery_pages()
    for place, text in texts.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links lead to pages of the site."""
    place = page.file.src_uri
    up = "../" * place.count("/")
    for file, target in OUTSIDE.items():
        markdown = re.sub(
            rf"\]\((?:\.\./)*{file}(#[^)]*)?\)", lambda link, target=target: f"]({up}{target}{link[1] or ''})", markdown
        )
    if place in OUTSIDE.values():
        markdown = re.sub(r"(\]\(|src=\")docs/", r"\1", markdown)
    return markdown


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Put the players in their places.  They are no text, so the search does not see them."""
    if "data-player" not in output:
        return output
    from docs.pictures import players

    for name, player in players().items():
        output = output.replace(f'<div data-player="{name}"></div>', player)
    return output


def on_post_build(config: MkDocsConfig) -> None:
    """Pages that are opened as files may fetch nothing, not even the index of the search: there it is a script."""
    folder = Path(config.site_dir, "search")
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")
