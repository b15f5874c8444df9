"""redqueen from Python: start runs, read them, breed adapters and load members. ``import redqueen`` exports all of it.

The functions do the same as the commands and raise the same ``UserError``, which names arguments instead of flags.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, wraps
from html import escape
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from redqueen.config import Config, parse_config, parse_recorded
from redqueen.config import load_config as read_config
from redqueen.display import counted, visible
from redqueen.errors import UserError
from redqueen.journal import Journal, read
from redqueen.journal.untrusted import json_of, naming_contradictions

if TYPE_CHECKING:
    import pandas
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from redqueen.report.view import RunView

P = ParamSpec("P")
T = TypeVar("T")

ConfigLike = Config | Mapping[str, Any] | str | Path | None
"""A config, a mapping of its sections, a TOML file, a preset's name, or None for the defaults."""


def naming_arguments(function: Callable[P, T]) -> Callable[P, T]:
    """Make the errors of a function name arguments and calls instead of flags and commands."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except UserError as error:
            raise UserError(_with_argument_names(str(error))) from None

    return call


def _with_argument_names(text: str) -> str:
    text = re.sub(r"`redqueen (train|resume|breed)\b[^`]*`", r"`redqueen.\1(...)`", text)
    text = text.replace("--set ", "overrides: ")
    return re.sub(r"(?<!\S)--([a-z][a-z-]+)", lambda found: found[1].replace("-", "_"), text)


@naming_arguments
def load_config(config: ConfigLike = None, overrides: Mapping[str, Any] | None = None) -> Config:
    """Return a whole config: from a preset's name, a TOML file, plain values, or the defaults.

    ``overrides`` are values by ``"section.field"``. Raises UserError that names the field and its valid values.
    """
    _refuse_other_type("config", config, (Config, Mapping, str, Path), "a preset's name, a TOML file or plain values")
    _refuse_other_type("overrides", overrides, (Mapping,), 'a dict such as {"run.num_steps": 2}')
    if isinstance(config, Config):
        found = config
    elif isinstance(config, Mapping):
        plain = {name: dict(fields) if isinstance(fields, Mapping) else fields for name, fields in config.items()}
        found = parse_config(plain, "config")
    else:
        found = read_config(None if config is None else Path(config))
    if not overrides:
        return found
    data = found.model_dump(mode="json", exclude_unset=True)
    for name, value in overrides.items():
        section, dot, field = str(name).partition(".")
        if not dot:
            raise UserError(f'overrides: write {name!r} as "section.field", for example "run.num_steps"')
        data.setdefault(section, {})[field] = value
    return parse_config(data, "overrides")


def _refuse_other_type(name: str, given: object, known: tuple[type, ...], wanted: str) -> None:
    if given is not None and not isinstance(given, known):
        raise UserError(f"{name}: give {wanted}, not a {type(given).__name__}")


@naming_arguments
def train(
    config: ConfigLike = None, run_dir: str | Path | None = None, overrides: Mapping[str, Any] | None = None
) -> Run:
    """Do a run from its beginning to its report and return it; its folder is ``run_dir`` (default runs/NAME-SEED).

    Progress is shown on standard error. Raises UserError, with nothing written, for a config that cannot run, and
    KeyboardInterrupt when the run was stopped; ``resume`` then continues it.
    """
    from redqueen.fitting import fit_to_base
    from redqueen.run.lifecycle import start

    resolved = fit_to_base(load_config(config, overrides), overrides or ()).config
    folder = Path(run_dir) if run_dir else Path("runs") / f"{resolved.run.name}-{resolved.run.rng_seed}"
    return _finished(folder, start(resolved, folder))


@naming_arguments
def resume(
    run_dir: str | Path, num_steps: int | None = None, trust_hooks: bool = False, allow_weak: bool = False
) -> Run:
    """Continue a run from its newest checkpoint; with ``num_steps`` also beyond its previous end.

    The folder is untrusted: see ``redqueen.run.lifecycle.resume``. Raises as ``train`` does.
    """
    from redqueen.run import lifecycle

    overrides = [] if num_steps is None else [f"run.num_steps={num_steps}"]
    return _finished(Path(run_dir), lifecycle.resume(Path(run_dir), trust_hooks, allow_weak, overrides=overrides))


def _finished(folder: Path, has_ended: bool) -> Run:
    from redqueen.report.pages import write_report
    from redqueen.run.store import REPORT

    if not has_ended:
        raise KeyboardInterrupt(f"{folder} was stopped; redqueen.resume({str(folder)!r}) continues it")
    write_report([folder], folder / REPORT)
    return Run(folder)


class Records(list[dict[str, Any]]):
    """A list of dicts; ``frame()`` returns them as a pandas data frame."""

    def frame(self) -> pandas.DataFrame:
        """Return the records as a data frame, one row each. Raises UserError without pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise UserError("a data frame needs the package pandas: pip install pandas") from None
        return pandas.DataFrame(list(self))


@dataclass(frozen=True)
class Figures:
    """The report of a run as one page of HTML that fetches nothing; a notebook shows it in an iframe."""

    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        # allow-scripts only: the page can draw its charts and has no access to the notebook
        return f'<iframe sandbox="allow-scripts" width="100%" height="800" srcdoc="{escape(self.html)}"></iframe>'


class Run:
    """Read access to a run directory, also while another process writes it. Nothing in it is changed or executed.

    Text that a model wrote (in tasks and attempts) is untrusted.
    """

    def __init__(self, run_dir: str | Path) -> None:
        """Raises UserError when there is no run in the folder, or its journal is damaged."""
        self.folder = Path(run_dir)
        self._recorded_config = dict(self._read(read.run_record).config)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @cached_property
    def config(self) -> Config:
        """The config in the journal. Raises UserError when it is from another version of redqueen."""
        return parse_recorded(self._recorded_config, f"the config in the journal of {self.folder}")

    @property
    def num_steps(self) -> int:
        """Steps in the journal, without step 0."""
        return self._read(read.last_step) or 0

    def metrics(self) -> Records:
        """Return one record per step: ``step``, and every metric by its name (None: not defined in that step)."""
        steps: dict[int, dict[str, Any]] = {}
        for name, series in self._read(read.metric_series).items():
            for step, value in series:
                steps.setdefault(step, {"step": step})[name] = value
        return Records(steps[step] for step in sorted(steps))

    def members(self) -> Records:
        """Return one record per member, past and present, in the order of birth.

        ``id``, ``role``, ``slot``, ``born_step``, ``left_step`` (None: still there), ``operator``, ``parents``, and
        the last rating: ``mu``, ``sigma`` (rating points), ``fitness``; None where a member has none.
        """
        parents = {row["child"]: named for row, named in self._read(read.births)}
        rated = {row["individual"]: row for row in self._read(read.ratings)}
        nothing: dict[str, Any] = {}
        return Records(
            {**row, "parents": parents.get(row["id"], [])}
            | {name: rated.get(row["id"], nothing).get(name) for name in ("mu", "sigma", "fitness")}
            for row in self._read(read.individuals)
        )

    def tasks(self, kind: str = "", step: int | None = None) -> Records:
        """Return the valid tasks in the order of proposal, optionally only those of one kind or step.

        ``inputs`` and ``outputs`` are lists of literals; ``solve_frac`` (0..1) is None without graded attempts.
        """
        asked = "SELECT * FROM task WHERE (? = '' OR kind = ?) AND (? IS NULL OR step = ?) ORDER BY seq"
        rows = self._read(lambda journal: journal.query(asked, (kind, kind, step, step)))
        return Records(
            row
            | {name: json_of(row, name) for name in ("inputs", "outputs")}
            | {"solve_frac": row["num_correct"] / row["num_attempts"] if row["num_attempts"] else None}
            for row in rows
        )

    def attempts(self, task: str) -> Records:
        """Return all attempts at the task of this id: text, answer, thought, verdict, reward, advantage..."""
        asked = "SELECT a.* FROM attempt a JOIN task t ON a.task = t.seq WHERE t.id = ? ORDER BY a.seq"
        return Records(self._read(lambda journal: journal.query(asked, (task,))))

    def evaluations(self) -> Records:
        """Return external fitness, one record per step, member, stratum, kind and mode; see ``docs/runs.md``."""
        return Records(self._read(read.evaluations))

    @naming_arguments
    def export(self, out: str | Path, member: str = "", merge: bool = False) -> Path:
        """Write the run's product, or ``member``, as a PEFT folder, or with ``merge`` as a whole model; return ``out``.

        Raises UserError for an unknown member, a run without a product, or a folder that exists.
        """
        from redqueen.commands.export import export_member

        return export_member(self.folder, member, Path(out), merge)

    def plot(self) -> Figures:
        """Return the figures of the report over the steps so far. Raises UserError before the first step."""
        from redqueen.report.pages import report_html

        return Figures(self._view(lambda view: report_html([view])))

    def _repr_html_(self) -> str:
        """Return the held-out scores as HTML for a notebook, or the reason why there are none yet."""
        from redqueen.report.summary import result_lines

        try:
            lines = self._view(result_lines)
        except UserError as error:
            lines = [str(error)]
        return "<br>".join(escape(visible(line)) for line in (f"{self}, {counted(self.num_steps, 'step')}", *lines))

    def _view(self, function: Callable[[RunView], T]) -> T:
        from redqueen.report.view import read_run

        with naming_contradictions(self.folder):
            return function(read_run(self.folder))

    @naming_arguments
    def _read(self, function: Callable[[Journal], T]) -> T:
        from redqueen.run.store import JOURNAL

        with closing(Journal.open(self.folder / JOURNAL, read_only=True)) as journal:
            return function(journal)


@naming_arguments
def breed(
    operator: str,
    parents: Sequence[str | Path],
    out: str | Path,
    seed: int = 0,
    fitness: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Breed a child from PEFT folders into the folder ``out``; return the content of its ``breeding.json``.

    ``operator``: an id of ``redqueen operators``; ``fitness``: one number per parent (a list or an array). Raises
    UserError, with nothing written, for invalid arguments or parents that cannot be combined.
    """
    from redqueen.commands.breed import breed_folders

    if isinstance(parents, str | Path):
        raise UserError(f"parents: {str(parents)!r} is one folder: give a list of folders")
    try:
        numbers = None if fitness is None else [float(value) for value in fitness]
    except (TypeError, ValueError):
        raise UserError(f"fitness: {fitness!r} is not a list of numbers: give one for each parent") from None
    return breed_folders(operator, [Path(parent) for parent in parents], seed, numbers, Path(out))


@naming_arguments
def evolve_adapters(
    adapters: Sequence[str | Path],
    fitness: Callable[[Path], float],
    out: str | Path,
    generations: int = 10,
    operators: Sequence[str] = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4"),
    seed: int = 0,
) -> Records:
    """Evolve PEFT adapters of one base without self-play; return the survivors, the fittest first, one dict each.

    ``fitness``: your function from an adapter's folder to a number, larger is better; it is called once per adapter.
    Each generation breeds as many children as there are adapters, into ``out``; the fittest of parents and children
    survive. A record has ``folder``, ``fitness``, ``generation`` (0: given), ``operator`` and ``parents``. Raises
    UserError for invalid arguments.
    """
    from redqueen.commands.breed import evolve_folders

    folders = [Path(adapter) for adapter in adapters]
    return Records(evolve_folders(folders, fitness, Path(out), generations, operators, seed))


@dataclass(frozen=True)
class Member:
    """A member as a whole model: the base with the adapter's effect added to its weights, and the tokenizer."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


@naming_arguments
def load_member(source: str | Path, member: str = "") -> Member:
    """Load a member of a run (newest checkpoint) by its id, or a folder that `redqueen export` or PEFT wrote.

    ``source``: a run directory (then give ``member``), or the folder of an adapter or a model. Raises UserError when
    there is none, or no such member.
    """
    from redqueen.adapters.peft import CONFIG_FILE, read_adapter
    from redqueen.commands.adapter_base import base_of
    from redqueen.commands.export import merged, open_member
    from redqueen.engine import load_base

    folder = Path(source)
    if member:
        opened = open_member(folder, member)
        return Member(member, *merged(opened.config.model.base, opened.genotype))
    if isfile(folder / CONFIG_FILE):
        adapter = read_adapter(folder)
        return Member(folder.resolve().name, *merged(base_of(adapter), adapter.genotype))
    if isfile(folder / "journal.sqlite"):  # Path raises for a name that is too long
        alive = ", ".join(row["id"] for row in Run(folder).members() if row["left_step"] is None)
        raise UserError(f"{folder} is a run: name one of its members, member={alive.split(', ')[0]!r} (of {alive})")
    try:
        model, tokenizer = load_base(str(folder))
    except UserError as error:
        raise UserError(str(error).replace("model.base", "source")) from None
    return Member(folder.resolve().name, model, tokenizer)
