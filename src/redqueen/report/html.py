"""The end report: one self-contained HTML page from one or more run directories, safe against what models wrote."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from redqueen import __version__
from redqueen.display import script_json, shown, visible
from redqueen.domains.registry import shown_as
from redqueen.errors import UserError
from redqueen.files import naming_another_file, write_whole
from redqueen.journal.values import json_pairs, naming_contradictions
from redqueen.report.card import Card, report_card
from redqueen.report.figure import Figure, Section
from redqueen.report.labels import labels_of
from redqueen.report.sections import sections_of
from redqueen.report.side_by_side import arm_rows, comparison_section, setting_rows
from redqueen.report.story import Story, tell
from redqueen.report.tables import (
    MAX_MEMBERS,
    Tile,
    arm_cells,
    birth_rows,
    family_tree,
    member_head,
    member_rows,
    tiles,
)
from redqueen.report.timeline import Health, health_of
from redqueen.report.view import Example, RunView, read_run
from redqueen.run.store import refuse_own_file

ASSETS = Path(__file__).parent / "assets"
MAX_TEXT_CHARS = 4000
"""Longest piece of a model's text on the page; the journal has all of it."""

MAX_WHOLE_CHARS = 100_000
"""Longest config or family tree on it: what is the run's own is shown whole, unless it is out of all measure."""


@dataclass(frozen=True)
class PlacedFigure:
    """A figure with its id on the page and its index in the page's JSON."""

    figure: Figure
    id: str
    index: int


@dataclass(frozen=True)
class PlacedSection:
    id: str
    title: str
    text: str
    figures: tuple[PlacedFigure, ...]


@dataclass(frozen=True)
class PlacedExample:
    """An example task with its inputs and outputs side by side, and how its kind shows such a pair."""

    task: dict[str, object]
    pair: str
    pairs: list[tuple[str, str]]
    attempts: list[dict[str, object]]


@dataclass(frozen=True)
class RunPage:
    """All that the template shows of one run."""

    id: str
    view: RunView
    story: Story
    card: Card
    picture: PlacedFigure | None
    health: Health
    tiles: list[Tile]
    sections: list[PlacedSection]
    member_head: list[str]
    member_rows: list[list[str]]
    num_left_out: int
    birth_rows: list[list[str]]
    family_tree: str
    first_examples: list[PlacedExample]
    last_examples: list[PlacedExample]
    config_text: str


def write_report(run_dirs: Sequence[Path], out: Path) -> Path:
    """Write the report of one run, or of several side by side, to ``out`` (an .html file) and return its path.

    Raises UserError when a directory holds no run, when ``out`` cannot be written, or is a file that a run needs.
    """
    refuse_own_file(out)
    with naming_contradictions(", ".join(map(str, run_dirs))):
        page = report_html(read_runs(run_dirs))
    with naming_another_file(f"the report to {out}"):
        write_whole(Path(out), page)
    return Path(out)


def read_runs(run_dirs: Sequence[Path]) -> list[RunView]:
    """Read the runs, labelled by their folders' names (``labels_of``)."""
    if not run_dirs:
        raise UserError("Name at least one run directory to report on.")
    paths = [Path(run_dir).resolve() for run_dir in run_dirs]
    return [read_run(path, label) for path, label in zip(paths, labels_of(paths), strict=True)]


def report_html(views: Sequence[RunView]) -> str:
    """Return the page. Everything that is not ours goes through the template's escaping or through ``script_json``."""
    figures: list[Figure] = []
    comparison = place(comparison_section(views), "compare", figures) if len(views) > 1 else None
    runs = [_run_page(view, f"run-{at}", figures) for at, view in enumerate(views)]
    css, echarts, script = (_asset(name) for name in ("report.css", "echarts.min.js", "report.js"))
    title = f"Red Queen: {views[0].label}" if len(views) == 1 else f"Red Queen: {len(views)} runs side by side"
    return _template().render(
        title=visible(title, one_line=True),
        policy=_policy((echarts, script), css),
        css=Markup(css),
        echarts=Markup(echarts),
        script=Markup(script),
        figures_json=Markup(script_json([{"id": figure.id, "chart": figure.chart} for figure in figures])),
        links=_links(runs, comparison),
        comparison=comparison,
        arm_rows=arm_cells(arm_rows(views)) if comparison else [],
        setting_head=["setting", *(view.label for view in views)],
        setting_rows=setting_rows(views),
        runs=runs,
        version=__version__,
    )


def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("redqueen.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
    )
    environment.filters["visible"] = partial(visible, max_chars=MAX_TEXT_CHARS)
    environment.filters["whole"] = partial(visible, max_chars=MAX_WHOLE_CHARS)
    return environment.get_template("report.html.j2")


def _run_page(view: RunView, page_id: str, figures: list[Figure]) -> RunPage:
    card = report_card(view)
    return RunPage(
        id=page_id,
        view=view,
        story=tell(view),
        card=card,
        picture=None if card.figure is None else place_figure(card.figure, page_id, figures),
        health=health_of(view),
        tiles=tiles(view),
        sections=[place(section, f"{page_id}-{section.id}", figures) for section in sections_of(view)],
        member_head=member_head(view),
        member_rows=member_rows(view),
        num_left_out=max(0, sum(m["left_step"] is None for m in view.individuals) - MAX_MEMBERS),
        birth_rows=birth_rows(view),
        family_tree=family_tree(view),
        first_examples=[_placed_example(example) for example in view.first_examples],
        last_examples=[_placed_example(example) for example in view.last_examples],
        config_text=json.dumps(view.run.config, indent=2, sort_keys=True, ensure_ascii=False),
    )


def place(section: Section, section_id: str, figures: list[Figure]) -> PlacedSection:
    """Append the section's figures to the page's list and return the section with their indices in it."""
    placed = tuple(place_figure(figure, section_id, figures) for figure in section.figures)
    return PlacedSection(section_id, section.title, section.text, placed)


def place_figure(figure: Figure, prefix: str, figures: list[Figure]) -> PlacedFigure:
    """Append a figure to the page's list and return it with its index in it."""
    figures.append(figure)
    return PlacedFigure(figure, f"{prefix}-{figure.id}", len(figures) - 1)


def _placed_example(example: Example) -> PlacedExample:
    pairs = list(zip(*json_pairs(example.task), strict=True))
    return PlacedExample(example.task, shown_as(str(example.task["kind"])).pair, pairs, example.attempts)


def _links(runs: Sequence[RunPage], comparison: PlacedSection | None) -> list[tuple[str, str]]:
    if comparison is not None:
        return [(comparison.id, comparison.title), *((run.id, run.view.label) for run in runs)]
    run = runs[0]
    rest = [("members", "Members"), ("examples", "Examples"), ("config", "How it was made")]
    return [(s.id, s.title) for s in run.sections] + [(f"{run.id}-{part}", name) for part, name in rest]


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _policy(scripts: Sequence[str], css: str) -> str:
    """Return the content security policy: nothing is fetched, and only our own scripts and style, by hash, count."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"

    allowed = " ".join(digest(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {digest(css)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
