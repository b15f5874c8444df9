"""The dashboard's routes: each opens the journal, asks what the page shows, and renders it with escaping."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from redqueen.dashboard import lineage, members, pages, tasks
from redqueen.dashboard.find import RunDir, find_runs
from redqueen.dashboard.guard import Guard
from redqueen.dashboard.listing import Listing
from redqueen.dashboard.rendering import ASSETS, Renderer
from redqueen.dashboard.starting import PARTS, beginning
from redqueen.dashboard.thin import stretch_steps, thin
from redqueen.domains.registry import in_order, shown_as
from redqueen.errors import UserError
from redqueen.journal import read
from redqueen.journal.values import naming_contradictions
from redqueen.report.figure import Figure, Section
from redqueen.report.html import PlacedSection, place, place_figure
from redqueen.report.side_by_side import arm_rows, comparison_section, setting_rows
from redqueen.report.tables import arm_cells, birth_rows, member_head

MAX_COMPARED = 6
MAX_SEQ = 2**62


def create_app(root: Path) -> Starlette:
    """Return the application that serves the runs in ``root``; they are looked for anew with every request."""
    site = Site(root)
    routes = [
        Route("/", site.overview),
        Route("/compare", _about_runs(site.compare)),
        Route("/run/{run}", _about_runs(site.run)),
        Route("/run/{run}/lineage", _about_runs(site.lineage)),
        Route("/run/{run}/members", _about_runs(site.members)),
        Route("/run/{run}/member", _about_runs(site.member)),
        Route("/run/{run}/tasks", _about_runs(site.tasks)),
        Route("/run/{run}/task/{seq:int}", _about_runs(site.task)),
        Route("/assets/{name}", site.asset),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: site.http_error, UserError: site.user_error},
    )


def _about_runs(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return the endpoint with every contradiction of a journal told as a page."""

    def answer(request: Request) -> Response:
        with naming_contradictions(request.path_params.get("run", "one of the runs")):
            return endpoint(request)

    return answer


class Site:
    """The pages over one folder of runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.library, self.listing = pages.Library(), Listing()
        self.show = Renderer()

    # ---- pages -------------------------------------------------------------------------------------------------------
    def overview(self, request: Request) -> Response:
        """List the runs."""
        runs = self.listing.read(find_runs(self.root).values())
        live = any(run.status == "running" for run in runs)
        return self.show.page("overview.html.j2", title="Runs", runs=runs, root=str(self.root), live=live)

    def run(self, request: Request) -> Response:
        """Show one run."""
        run = self._run(request)
        if early := self._before_step_1(run):
            return early
        page = pages.run_page(self.library.read(run))
        figures: list[Figure] = []
        picture = None if page.card.figure is None else place_figure(page.card.figure, "run", figures)
        sections = [place(section, section.id, figures) for section in page.sections]
        return self.show.run_page(
            "run.html.j2",
            run,
            page.view.label,
            "run",
            figures,
            page=page,
            picture=picture,
            sections=sections,
        )

    def lineage(self, request: Request) -> Response:
        """Show who descends from whom."""
        run = self._run(request)
        if early := self._before_step_1(run):
            return early
        view = self.library.read(run).view
        figures: list[Figure] = []
        return self.show.run_page(
            "lineage.html.j2",
            run,
            f"Lineage of {view.label}",
            "lineage",
            figures,
            view=view,
            sections=_placed([lineage.lineage_section(view)], figures),
            tree=lineage.family_tree(view),
            births=birth_rows(view)[-lineage.MAX_BIRTHS :][::-1],
            operators=lineage.operator_table(view),
            founders=lineage.founder_table(view),
        )

    def members(self, request: Request) -> Response:
        """List the members, page by page."""
        run = self._run(request)
        if early := self._before_step_1(run):
            return early
        view = self.library.read(run).view
        found = members.list_members(view, whole_number(request.query_params.get("page", "1")))
        title, head = f"Members of {run.label}", member_head(view, living_only=False)
        return self.show.run_page("members.html.j2", run, title, "members", found=found, head=head)

    def member(self, request: Request) -> Response:
        """Show one member."""
        run, name = self._run(request), request.query_params.get("id", "")
        with pages.open_journal(run) as journal:
            page = members.member_page(journal, run.path, name, read.last_step(journal) or 0)
        if page is None:
            raise HTTPException(404, "There is no such member in this run.")
        figures: list[Figure] = []
        course = [place_figure(figure, "course", figures) for figure in page.figures]
        title = f"{name} of {run.label}"
        return self.show.run_page("member.html.j2", run, title, "members", figures, page=page, course=course)

    def tasks(self, request: Request) -> Response:
        """Browse the tasks of a run."""
        run = self._run(request)
        problem, wanted = "", tasks.Wanted()
        with pages.open_journal(run) as journal:
            kinds = in_order(row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task"))
            try:
                wanted = tasks.parse_wanted(request.query_params, kinds)
            except UserError as error:
                problem = str(error)
            found = tasks.find_tasks(journal, wanted)
            members = journal.query("SELECT id, role FROM individual ORDER BY born_step, slot")
        following = "" if found.next_after is None else urlencode(wanted.query(found.next_after))
        return self.show.run_page(
            "tasks.html.j2",
            run,
            f"Tasks of {run.label}",
            "tasks",
            status=400 if problem else 200,
            wanted=wanted,
            problem=problem,
            found=found,
            ranges=tasks.RANGES,
            kinds={kind: shown_as(kind).title for kind in kinds},
            members=members,
            next_query=following,
            first_query=urlencode(wanted.query()),
        )

    def task(self, request: Request) -> Response:
        """Show one task with every attempt at it."""
        run, seq = self._run(request), self._seq(request)
        with pages.open_journal(run) as journal:
            detail = tasks.task_detail(journal, seq)
        if detail is None:
            raise HTTPException(404, "There is no such task in this run.")
        title = f"Task {detail.task['id']} of {run.label}"
        return self.show.run_page(
            "task.html.j2", run, title, "tasks", detail=detail, shown=shown_as(detail.task["kind"])
        )

    def compare(self, request: Request) -> Response:
        """Lay several runs over each other."""
        known, ids = find_runs(self.root), list(dict.fromkeys(request.query_params.getlist("run")))
        chosen = [known[name] for name in ids if name in known]
        if len(chosen) < len(ids):
            raise HTTPException(404, "One of the runs to compare is not in this folder any more.")
        figures: list[Figure] = []
        sections: list[PlacedSection] = []
        arms: list[list[str]] = []
        settings: list[list[str]] = []
        labels: list[str] = []
        problem = ""
        if len(chosen) > MAX_COMPARED:
            problem = f"Choose at most {MAX_COMPARED} runs: more lines cannot be told apart."
        elif len(chosen) >= 2:
            views = [self.library.read(run).view for run in chosen]
            drawn = [thin(view, stretch_steps(view.last_step)) for view in views]
            sections = _placed([comparison_section(drawn)], figures)
            arms, settings = arm_cells(arm_rows(views)), setting_rows(views)
            labels = [view.label for view in views]
        return self.show.page(
            "compare.html.j2",
            status=400 if problem else 200,
            title="Compare runs",
            runs=list(known.values()),
            chosen={run.id for run in chosen},
            problem=problem,
            sections=sections,
            arms=arms,
            settings=settings,
            labels=labels,
            figures=figures,
        )

    # ---- what is no page ---------------------------------------------------------------------------------------------
    def asset(self, request: Request) -> Response:
        """Return one of the package's own files; its address holds its digest, so it may be kept."""
        name = request.path_params["name"]
        if name not in ASSETS:
            raise HTTPException(404, "There is no such file.")
        return Response(
            self.show.assets[name], media_type=ASSETS[name][1], headers={"Cache-Control": "max-age=31536000, immutable"}
        )

    def http_error(self, request: Request, error: Exception) -> Response:
        """Say in one sentence what is not there."""
        assert isinstance(error, HTTPException)
        return self.show.page("error.html.j2", status=error.status_code, title="Not found", text=error.detail)

    def user_error(self, request: Request, error: Exception) -> Response:
        """Say in one sentence what is wrong with a run or a request."""
        return self.show.page("error.html.j2", status=409, title="This cannot be shown", text=str(error))

    # ---- helpers -----------------------------------------------------------------------------------------------------
    def _run(self, request: Request) -> RunDir:
        run = find_runs(self.root).get(request.path_params["run"])
        if run is None:
            raise HTTPException(404, "There is no such run in this folder.")
        return run

    def _before_step_1(self, run: RunDir) -> Response | None:
        """Return the page of a run whose journal has no step yet, None once it has one."""
        with pages.open_journal(run) as journal:
            start = beginning(journal, run.path)
        if start is None:
            return None
        return self.show.run_page("start.html.j2", run, run.label, "start", start=start, parts=PARTS)

    def _seq(self, request: Request) -> int:
        seq: int = request.path_params["seq"]
        if seq > MAX_SEQ:
            raise HTTPException(404, "There is no such task in this run.")
        return seq


def whole_number(text: str) -> int:
    """Return the number of a page in an address, 1 for what is none."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 1


def _placed(sections: Sequence[Section | None], figures: list[Figure]) -> list[PlacedSection]:
    return [place(section, section.id, figures) for section in sections if section is not None]
