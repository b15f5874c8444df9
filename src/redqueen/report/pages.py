"""Pages from templates: the report as one file, and the parts that the dashboard shares with it.

Text from models and journals is untrusted: it goes through the templates' escaping or through ``script_json``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from redqueen import __version__
from redqueen.display import counted, number, script_json, shown, visible
from redqueen.domains.registry import shown_as
from redqueen.errors import UserError
from redqueen.files import naming_remedy, write_whole
from redqueen.journal.untrusted import naming_contradictions
from redqueen.report.compare import ARMS_HEAD, arm_rows, comparison_sections, labels_of, setting_rows
from redqueen.report.figure import Chart, Section
from redqueen.report.figures import sections_of
from redqueen.report.fitness import MARKS
from redqueen.report.health import Health, health_of
from redqueen.report.lineage import BIRTHS_HEAD, FOUNDERS_HEAD, OPERATORS_HEAD, Lineage, lineage_of
from redqueen.report.metrics import TIPS
from redqueen.report.series import steps_per_point
from redqueen.report.story import Story, story_of
from redqueen.report.tables import MAX_MEMBERS, Tile, member_head, member_rows, tiles
from redqueen.report.view import RunView, read_run, thinned
from redqueen.run.store import refuse_own_file

ASSETS = Path(__file__).parent / "assets"

MAX_REPORT_CHARS, MAX_PAGE_CHARS, MAX_WHOLE_CHARS = 4000, 20_000, 100_000
"""Longest text of a model in the report and on a page of the dashboard, and longest config on both."""

Charts = dict[str, Chart]
"""The charts of a page's figures by their ids on the page."""

HEADS = {"operators": OPERATORS_HEAD, "founders": FOUNDERS_HEAD, "births": BIRTHS_HEAD, "arms": ARMS_HEAD}


@dataclass(frozen=True)
class RunPage:
    """The content of a page about one run. ``id`` is the prefix of its element ids; each point of a figure represents
    ``steps_per_point`` steps."""

    id: str
    view: RunView
    story: Story
    health: Health
    tiles: list[Tile]
    sections: list[Section]
    steps_per_point: int
    member_head: list[str]
    member_rows: list[list[str]]
    num_left_out: int
    lineage: Lineage | None
    config_text: str

    @property
    def charts(self) -> Charts:
        """The charts of its figures."""
        sections = [*self.sections, *([self.lineage.section] if self.lineage else [])]
        picture = {} if self.story.figure is None else {f"{self.id}-{self.story.figure.id}": self.story.figure.chart}
        return picture | charts_of(self.id, sections)


@dataclass(frozen=True)
class ComparePage:
    """The content of a page that compares several runs."""

    sections: list[Section]
    setting_head: list[str]
    setting_rows: list[list[str]]
    arm_rows: list[list[str]]


def write_report(run_dirs: Sequence[Path], out: Path) -> Path:
    """Write the report of one run, or the comparison of several, to ``out`` (an .html file) and return its path.

    Raises UserError when a directory has no run, when ``out`` cannot be written, or when a run needs that file.
    """
    refuse_own_file(out)
    if not run_dirs:
        raise UserError("Give at least one run directory to report on.")
    paths = [Path(run_dir).resolve() for run_dir in run_dirs]
    with naming_contradictions(", ".join(map(str, run_dirs))):
        return write_page([read_run(path, label) for path, label in zip(paths, labels_of(paths), strict=True)], out)


def write_page(views: Sequence[RunView], out: Path) -> Path:
    """Write the report of these views. Raises UserError when ``out`` cannot be written."""
    page = report_html(views)
    with naming_remedy(f"the report cannot be written to {out}", "name another file with --out"):
        write_whole(out, page)
    return out


def report_html(views: Sequence[RunView]) -> str:
    """Return the report as one page that fetches nothing."""
    comparison = compare_page(views) if len(views) > 1 else None
    runs = [run_page(view, f"run-{at}", lineage_of(view)) for at, view in enumerate(views)]
    charts = charts_of("all", comparison.sections if comparison else [])
    for page in runs:
        charts |= page.charts
    css, echarts, script = ((ASSETS / name).read_text("utf-8") for name in ("page.css", "echarts.min.js", "page.js"))
    inline = {"policy": _policy((echarts, script), css), "css": Markup(css)}
    inline |= {"echarts": Markup(echarts), "script": Markup(script)}
    links = [(page.id, page.view.label) for page in runs]
    if comparison is None:
        parts = [("members", "Members"), ("examples", "Examples"), ("config", "Versions and config")]
        links = [*((section.id, section.title) for section in runs[0].sections), *parts]
        links = [(f"run-0-{part}", name) for part, name in links]
    return render(
        environment(MAX_REPORT_CHARS),
        "report.html.j2",
        charts,
        title=views[0].label if len(views) == 1 else f"{len(views)} runs compared",
        inline=inline,
        links=links,
        comparison=comparison,
        runs=runs,
    )


def run_page(view: RunView, page_id: str = "run", lineage: Lineage | None = None) -> RunPage:
    """Return the content of a page about one run, with its lineage if given."""
    size = steps_per_point(view.last_step)
    return RunPage(
        id=page_id,
        view=view,
        story=story_of(view),
        health=health_of(view),
        tiles=tiles(view),
        sections=sections_of(thinned(view, size)),
        steps_per_point=size,
        member_head=member_head(view),
        member_rows=member_rows(view),
        num_left_out=max(0, len(view.living) - MAX_MEMBERS),
        lineage=lineage,
        config_text=json.dumps(view.run.config, indent=2, sort_keys=True, ensure_ascii=False),
    )


def compare_page(views: Sequence[RunView]) -> ComparePage:
    """Return the content of a page that compares several runs."""
    drawn = [thinned(view, steps_per_point(view.last_step)) for view in views]
    return ComparePage(
        sections=comparison_sections(drawn),
        setting_head=["setting", *(view.label for view in views)],
        setting_rows=setting_rows(views),
        arm_rows=arm_rows(views),
    )


def charts_of(prefix: str, sections: Sequence[Section]) -> Charts:
    """Return the charts of the sections' figures by their ids on the page."""
    return {f"{prefix}-{figure.id}": figure.chart for section in sections for figure in section.figures}


@cache
def environment(max_chars: int) -> Environment:
    """Return the templates' environment; a model's text is cut to ``max_chars``."""
    made = Environment(
        loader=PackageLoader("redqueen.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters["visible"] = partial(visible, max_chars=max_chars)
    made.filters["whole"] = partial(visible, max_chars=MAX_WHOLE_CHARS)
    made.filters["word"] = partial(visible, max_chars=120, one_line=True)
    made.filters["tip"] = lambda name: TIPS.get(name.partition(",")[0].lower(), "")
    made.filters["counted"] = counted
    made.filters["number"] = lambda value: number(value).replace("-", "−")
    made.globals |= {"version": __version__, "marks": MARKS, "shown_as": shown_as, "heads": HEADS}
    return made


def render(templates: Environment, name: str, charts: Charts | None = None, **values: object) -> str:
    """Return a page that contains the charts of its figures as JSON. ``inline`` and ``live`` default to ""."""
    known = {"inline": "", "live": "", "has_charts": bool(charts), "charts": Markup(script_json(charts or {}))}
    return templates.get_template(name).render(**known | values)


def _policy(scripts: Sequence[str], css: str) -> str:
    """Return the content security policy: no fetching, and only our own scripts and style, identified by hash."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"

    allowed = " ".join(digest(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {digest(css)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
