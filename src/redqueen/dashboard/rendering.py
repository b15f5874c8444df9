"""Renders the dashboard's pages: templates with escaping, the package's own assets, nothing inline."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from redqueen import __version__
from redqueen.dashboard.find import RunDir, is_running, written_s_ago
from redqueen.dashboard.starting import doing
from redqueen.display import duration, number, script_json, shown, visible
from redqueen.report.card import MARKS
from redqueen.report.figure import Figure
from redqueen.run.now import read_now

MAX_TEXT_CHARS = 20_000
"""Longest piece of a model's text on a task's page; ``redqueen tasks`` prints all of it."""

MAX_EXCERPT_CHARS = 2_000
"""Longest piece where many stand beside each other."""

REFRESH_S = 5
LIVE_PARTS = ("run", "lineage", "members", "start")
"""The pages of a run that look for news while it goes on."""

ASSETS = {
    "report.css": ("report", "text/css"),
    "dashboard.css": ("dashboard", "text/css"),
    "echarts.min.js": ("report", "text/javascript"),
    "report.js": ("report", "text/javascript"),
    "theme.js": ("dashboard", "text/javascript"),
    "dashboard.js": ("dashboard", "text/javascript"),
}


class Renderer:
    """Makes pages from templates."""

    def __init__(self) -> None:
        self.assets = {name: _read_asset(folder, name) for name, (folder, _) in ASSETS.items()}
        self._environment = _environment(self.assets)

    def run_page(
        self, template: str, run: RunDir, title: str, part: str, figures: Sequence[Figure] = (), **values: Any
    ) -> HTMLResponse:
        """Return a page about one run; ``part`` is its name in the bar of the run's pages."""
        live = part in LIVE_PARTS and is_running(run.path)
        ago = written_s_ago(run.path)
        written = "" if ago is None else f"{duration(ago)} ago"
        return self.page(
            template,
            title=title,
            run=run,
            part=part,
            figures=figures,
            live=live,
            written=written,
            doing=doing(read_now(run.path)) if live else "",
            **values,
        )

    def page(
        self, template: str, status: int = 200, live: bool = False, figures: Sequence[Figure] = (), **values: Any
    ) -> HTMLResponse:
        """Return a page; its figures' data stand in it as JSON."""
        drawn = [{"id": figure.id, "chart": figure.chart} for figure in figures]
        page = self._environment.get_template(template).render(
            live=live,
            refresh_s=REFRESH_S,
            version=__version__,
            num_figures=len(drawn),
            figures_json=Markup(script_json(drawn)),
            **values,
        )
        return HTMLResponse(page.encode("utf-8", "replace"), status)


def _read_asset(folder: str, name: str) -> bytes:
    return (Path(__file__).parents[1] / folder / "assets" / name).read_bytes()


def _environment(assets: dict[str, bytes]) -> Environment:
    loader = ChoiceLoader(
        [PackageLoader("redqueen.dashboard", "templates"), PackageLoader("redqueen.report", "templates")]
    )
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    digests = {name: hashlib.sha256(text).hexdigest()[:16] for name, text in assets.items()}
    environment.filters["visible"] = partial(visible, max_chars=MAX_TEXT_CHARS)
    environment.filters["excerpt"] = partial(visible, max_chars=MAX_EXCERPT_CHARS)
    environment.filters["word"] = partial(visible, max_chars=120, one_line=True)
    environment.filters["number"] = lambda value: number(value).replace("-", "−")
    environment.filters["duration"] = duration
    environment.globals["asset"] = lambda name: f"/assets/{name}?v={digests[name]}"
    environment.globals["marks"] = MARKS
    return environment
