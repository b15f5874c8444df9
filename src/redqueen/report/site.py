"""The dashboard's routes: each opens the journal, reads the page's data, and renders it with escaping."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from redqueen.display import duration
from redqueen.domains.registry import in_order, shown_as
from redqueen.errors import UserError
from redqueen.journal import read
from redqueen.journal.untrusted import naming_contradictions
from redqueen.locking import is_locked
from redqueen.report.guard import Guard
from redqueen.report.lineage import lineage_of
from redqueen.report.pages import ASSETS, MAX_PAGE_CHARS, Charts, charts_of, compare_page, environment, render, run_page
from redqueen.report.runs import Library, Listing, RunDir, doing, find_runs, open_journal, written_s_ago
from redqueen.report.tables import MAX_MEMBERS, member_head, member_rows
from redqueen.report.task_list import NEIGHBOURS, TaskFilter, read_form, task_page, task_with_attempts, whole_number
from redqueen.run.status import read_status

MAX_COMPARED = 8
MAX_SEQ = 2**62
REFRESH_S = 5
LIVE_PARTS = ("run", "lineage", "members")
"""The pages that are refreshed while a run is in progress."""

ASSET_TYPES = {"page.css": "text/css", "page.js": "text/javascript", "echarts.min.js": "text/javascript"}
"""The media type of each asset."""


def create_app(root: Path) -> Starlette:
    """Return the application that serves the runs in ``root``; every request searches for runs again."""
    site = Site(root)
    pages = {
        "": site.run,
        "/lineage": site.lineage,
        "/members": site.members,
        "/tasks": site.tasks,
        "/task/{seq}": site.task,
    }
    return Starlette(
        routes=[
            Route("/", site.home),
            Route("/compare", _with_error_page(site.compare)),
            *(Route(f"/run/{{run}}{path}", _with_error_page(endpoint)) for path, endpoint in pages.items()),
            Route("/assets/{name}", site.asset),
        ],
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: site.http_error, UserError: site.user_error},
    )


def _with_error_page(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return the endpoint; it answers a contradiction in a journal with an error page that names the run."""

    def answer(request: Request) -> Response:
        with naming_contradictions(request.path_params.get("run", "one of the runs")):
            return endpoint(request)

    return answer


class Site:
    """The pages over one folder of runs."""

    def __init__(self, root: Path) -> None:
        self.root, self.library, self.listing = root, Library(), Listing()
        self.assets = {name: (ASSETS / name).read_bytes() for name in ASSET_TYPES}
        self.templates = environment(MAX_PAGE_CHARS)
        self.templates.filters["duration"] = duration
        digests = {name: hashlib.sha256(text).hexdigest()[:16] for name, text in self.assets.items()}
        self.templates.globals |= {"asset": lambda name: f"/assets/{name}?v={digests[name]}", "refresh_s": REFRESH_S}

    # ---- pages -------------------------------------------------------------------------------------------------------
    def home(self, request: Request) -> Response:
        """List the runs."""
        runs = self.listing.read(find_runs(self.root).values())
        live = any(run.status == "running" for run in runs)
        return self._page("home.html.j2", title="Runs", runs=runs, root=str(self.root), live=live)

    def run(self, request: Request) -> Response:
        """Show one run."""
        run = self._run(request)
        if start := self._start_page(run):
            return start
        page = run_page(self.library.read(run))
        return self._run_page("run.html.j2", run, run.label, "run", page.charts, page=page)

    def lineage(self, request: Request) -> Response:
        """Show the lineage."""
        run = self._run(request)
        if start := self._start_page(run):
            return start
        view = self.library.read(run)
        lineage = lineage_of(view)
        charts = charts_of("run", [] if lineage is None else [lineage.section])
        title = f"Lineage of {run.label}"
        return self._run_page("lineage.html.j2", run, title, "lineage", charts, view=view, lineage=lineage)

    def members(self, request: Request) -> Response:
        """List all members, past ones included, page by page; a page number that is too large gives the last page."""
        run = self._run(request)
        if start := self._start_page(run):
            return start
        view = self.library.read(run)
        num_pages = max(1, -(-len(view.individuals) // MAX_MEMBERS))
        number = min(max(1, whole_number("page", request.query_params.get("page", "")) or 1), num_pages)
        return self._run_page(
            "members.html.j2",
            run,
            f"Members of {run.label}",
            "members",
            num_members=len(view.individuals),
            number=number,
            num_pages=num_pages,
            head=member_head(view, living_only=False),
            rows=member_rows(view, skip=(number - 1) * MAX_MEMBERS, living_only=False),
        )

    def tasks(self, request: Request) -> Response:
        """Browse the tasks of a run."""
        run, asked = self._run(request), request.query_params
        problem, wanted, after = "", TaskFilter(), None
        with open_journal(run) as journal:
            kinds = in_order(row["kind"] for row in journal.query("SELECT DISTINCT kind FROM task"))
            try:
                wanted, after = read_form(asked, kinds), whole_number("after", asked.get("after", ""))
            except UserError as error:
                problem = str(error)
            found = task_page(journal, wanted, after)
        next_query = "" if found.next_after is None else urlencode(wanted.asked | {"after": str(found.next_after)})
        return self._run_page(
            "tasks.html.j2",
            run,
            f"Tasks of {run.label}",
            "tasks",
            status=400 if problem else 200,
            wanted=wanted,
            after=after,
            problem=problem,
            found=found,
            kinds={kind: shown_as(kind).title for kind in kinds},
            next_query=next_query,
            first_query=urlencode(wanted.asked),
        )

    def task(self, request: Request) -> Response:
        """Show one task with every attempt at it."""
        run, asked = self._run(request), request.path_params["seq"]
        seq = int(asked) if asked.isdecimal() and len(asked) < 19 else MAX_SEQ  # a seq has fewer digits
        with open_journal(run) as journal:
            task = task_with_attempts(journal, "seq", seq)
            [(before, after)] = journal.tuples(NEIGHBOURS, (seq, seq))
        if task is None:
            raise HTTPException(404, "There is no such task in this run.")
        title = f"Task {task['id']} of {run.label}"
        return self._run_page("task.html.j2", run, title, "tasks", task=task, before=before, after=after)

    def compare(self, request: Request) -> Response:
        """Compare several runs."""
        known, ids = find_runs(self.root), list(dict.fromkeys(request.query_params.getlist("run")))
        chosen = [known[name] for name in ids if name in known]
        if len(chosen) < len(ids):
            raise HTTPException(404, "One of the runs to compare is no longer in this folder.")
        problem, page = "", None
        if len(chosen) > MAX_COMPARED:
            problem = f"Choose at most {MAX_COMPARED} runs: more lines cannot be distinguished."
        elif len(chosen) >= 2:
            page = compare_page([self.library.read(run) for run in chosen])
        return self._page(
            "compare.html.j2",
            charts_of("all", page.sections if page else []),
            status=400 if problem else 200,
            title="Compare runs",
            runs=list(known.values()),
            chosen={run.id for run in chosen},
            most=MAX_COMPARED,
            problem=problem,
            page=page,
        )

    # ---- other answers -----------------------------------------------------------------------------------------------
    def asset(self, request: Request) -> Response:
        """Return one of the package's own files; its address contains its digest, so browsers may cache it."""
        name = request.path_params["name"]
        if name not in ASSET_TYPES:
            raise HTTPException(404, "There is no such file.")
        headers = {"Cache-Control": "max-age=31536000, immutable"}
        return Response(self.assets[name], media_type=ASSET_TYPES[name], headers=headers)

    def http_error(self, request: Request, error: Exception) -> Response:
        """Say in one sentence what was not found."""
        assert isinstance(error, HTTPException)
        return self._page("error.html.j2", status=error.status_code, title="Not found", text=error.detail)

    def user_error(self, request: Request, error: Exception) -> Response:
        """Say in one sentence what is wrong with a run or a request."""
        return self._page("error.html.j2", status=409, title="This cannot be shown", text=str(error))

    # ---- helpers -----------------------------------------------------------------------------------------------------
    def _run(self, request: Request) -> RunDir:
        run = find_runs(self.root).get(request.path_params["run"])
        if run is None:
            raise HTTPException(404, "There is no such run in this folder.")
        return run

    def _start_page(self, run: RunDir) -> Response | None:
        """Return the page of a run whose journal has no step yet, None once it has one."""
        with open_journal(run) as journal:
            has_step = read.last_step(journal) is not None
        return None if has_step else self._run_page("start.html.j2", run, run.label, "run")

    def _run_page(
        self, template: str, run: RunDir, title: str, part: str, charts: Charts | None = None, **values: Any
    ) -> HTMLResponse:
        """Return a page about one run; ``part`` is its name in the run's navigation bar."""
        live, ago = part in LIVE_PARTS and is_locked(run.path), written_s_ago(run.path)
        known: dict[str, Any] = {
            "title": title,
            "run": run,
            "here": f"/run/{quote(run.id)}",
            "part": part,
            "live": live,
            "written": "some time ago" if ago is None else f"{duration(ago)} ago",
            "doing": doing(read_status(run.path)) if live else "",
        }
        return self._page(template, charts, **known | values)

    def _page(self, template: str, charts: Charts | None = None, status: int = 200, **values: Any) -> HTMLResponse:
        page = render(self.templates, template, charts, **values)
        return HTMLResponse(page.encode("utf-8", "replace"), status)
