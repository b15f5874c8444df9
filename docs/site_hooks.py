"""Hooks of mkdocs: what a page links to outside docs/ becomes part of the site, so that one link serves both readers.

On a forge a link of README.md such as ``experiments/RESULTS.md`` leads to the file; in the site it leads to a copy of
it, made here at build time under ``repository/``, as the navigation's pages outside docs/ are. The pages of docs/ link
to nothing outside it, since the wheel has them alone.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE = "repository"
"""Folder of the site that stands for the root of the repository."""

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file of the repository that the navigation names or a page links to, and what those pages link to."""
    files.append(File.generated(config, "index.md", abs_src_path=str(_root(config) / "README.md")))
    waiting = [file.src_uri for file in files.documentation_pages()]
    for uri in re.findall(rf"{OUTSIDE}/[\w./-]+", str(config.nav)):
        files.append(File.generated(config, uri, abs_src_path=str(_root(config) / _path_of(uri))))
        waiting.append(uri)
    while waiting:
        uri = waiting.pop()
        text = FENCE.sub("", (_root(config) / _path_of(uri)).read_text(encoding="utf-8"))
        for _, target, _ in LINK.findall(text):
            linked = _uri_of(target, uri, config)
            if linked is not None and files.get_file_from_path(linked) is None:
                files.append(File.generated(config, linked, abs_src_path=str(_root(config) / _path_of(linked))))
                waiting += [linked] if linked.endswith(".md") else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that leave docs/ into links to the copies."""
    here = page.file.src_uri

    def rewrite(found: re.Match[str]) -> str:
        target = _uri_of(found[2], here, config)
        if target is None:
            return found[0]
        return f"{found[1]}{posixpath.relpath(target, posixpath.dirname(here) or '.')}{found[3] or ''})"

    end, parts = 0, []
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(rewrite, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, LINK.sub(rewrite, markdown[end:])])


def _root(config: MkDocsConfig) -> Path:
    return Path(config.docs_dir).parent


def _path_of(uri: str) -> str:
    """Where a file of the site lies in the repository."""
    if uri == "index.md":
        return "README.md"
    return uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else f"docs/{uri}"


def _uri_of(target: str, page_uri: str, config: MkDocsConfig) -> str | None:
    """Where the file that a link means lies in the site; None for an address, or when there is no such file."""
    if ":" in target or target.startswith("/"):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(_path_of(page_uri)), target))
    if path.startswith("..") or not (_root(config) / path).is_file():
        return None
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{OUTSIDE}/{path}"
