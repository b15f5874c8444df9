"""``redqueen evaluate``: evaluate members on a suite, all in one batch, and print their scores.

Every member answers every question greedily and, for pass@k, several times at a temperature. All answers are kept as
JSON lines. The best member of a population is selected on the same items that score it, and is marked as such.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from redqueen.commands.examinees import Examination, open_examination
from redqueen.domains.prompt_format import completion_text
from redqueen.errors import UserError
from redqueen.evaluate.benchmarks import PAPER, PAPER_SUITES, load_questions
from redqueen.evaluate.external import EVALUATION_SEED
from redqueen.evaluate.fitness_suite import request_seed
from redqueen.evaluate.given_answers import summary_of
from redqueen.evaluate.judging import Judge
from redqueen.evaluate.questions import Question, TaskQuestion, clusters_of, prompt_for, read_answer, stops_of, styled
from redqueen.files import naming_remedy, write_whole
from redqueen.records import Grade, Request
from redqueen.run.progress import Activity
from redqueen.run.store import EVALUATIONS
from redqueen.statistics import bootstrap_mean, pass_at_k

ANSWER_TOKENS = 1024
"""Longest answer if the style is not the run's prompt format, unless --set sets solve.max_new_tokens (ours)."""

BEST_NOTE = "selected on the test items"


@dataclass(frozen=True)
class Answer:
    """One graded attempt of one examinee at one question. ``text`` is untrusted model output."""

    examinee: str
    role: str
    question: str
    mode: str
    sample: int
    text: str
    answer: str | None
    num_tokens: int
    finished: bool
    grade: Grade

    def as_line(self) -> str:
        """Return the answer as a JSON line."""
        fields = asdict(self)
        grade = fields.pop("grade")
        return json.dumps(fields | grade) + "\n"


def evaluate(
    target: str,
    suite: str,
    data: Path | None = None,
    limit: int | None = None,
    num_samples: int = 0,
    temperature: float = 0.8,
    out: Path | None = None,
    overrides: Sequence[str] = (),
    style: str = "auto",
) -> dict[str, Any]:
    """Evaluate ``target`` on ``suite``; write the answers to ``out`` and return the results as plain values.

    Without ``out`` the answers of a run's members are kept in the run, and other answers are not kept. Each item gets a
    greedy answer and ``num_samples`` answers at ``temperature``, for pass@k at k = 1, 2, 4... up to ``num_samples``.
    ``style``: the prompt style, see ``styled``. Raises UserError, with nothing written, for a target, suite or file
    that does not exist.
    """
    if num_samples < 0 or not 0 < temperature <= 10:
        raise UserError("--samples must be at least 0 and --temperature above 0 and at most 10")
    if unused := next((one for one in overrides if one.startswith("evaluate.")), ""):
        raise UserError(f"--set {unused} is for evaluations within a run: use --limit, --samples or --temperature")
    questions = load_questions(suite, data, limit)
    if not target:
        raise UserError(
            "nothing to evaluate: name a run directory, a PEFT or model folder, or the word base, or give --answers"
        )
    with Activity("loading the base") as activity, open_examination(target, overrides, activity) as examination:
        path = out or _default_path(target, suite, examination)
        if path is not None and path.exists():
            raise UserError(f"{path} exists already: give another --out, or delete it")
        if path is not None:
            _refuse_unwritable(path)
        verify = examination.engine.config.verify
        with Judge(verify.num_workers, verify.allow_weak) as judge:
            judge.grade([(questions[0], "")])  # reports a missing grader before answers are sampled
            tokens = 0 if any(one.startswith("solve.max_new_tokens") for one in overrides) else ANSWER_TOKENS
            keep = partial(_write, path) if path is not None else lambda _: None
            words = activity.begin
            answers = examine(examination, questions, judge, num_samples, temperature, words, style, tokens, keep)
    about = {"suite": suite, "target": target, "style": style, "answers": None if path is None else str(path)}
    return about | results(answers, questions, num_samples)


def evaluate_all(
    target: str,
    suite: str,
    data: Path | None,
    limit: int | None,
    num_samples: int,
    temperature: float,
    out: Path | None,
    overrides: Sequence[str],
    style: str = "auto",
) -> None:
    """Evaluate on ``suite`` and print the results; ``paper`` is ten suites, whose items are all loaded first.

    The arguments are those of ``evaluate``; for ``paper``, ``data`` and ``out`` are folders with a file SUITE.jsonl for
    each suite.
    """
    if suite != PAPER:
        show(evaluate(target, suite, data, limit, num_samples, temperature, out, overrides, style))
        return
    files = [[folder and folder / f"{name}.jsonl" for folder in (data, out)] for name in PAPER_SUITES]
    for name, (items, _) in zip(PAPER_SUITES, files, strict=True):
        load_questions(name, items, limit)
    for name, (items, answers) in zip(PAPER_SUITES, files, strict=True):
        show(evaluate(target, name, items, limit, num_samples, temperature, answers, overrides, style))


def examine(
    examination: Examination,
    questions: Sequence[Question],
    judge: Judge,
    num_samples: int,
    temperature: float,
    begin: Callable[[str], None] = lambda words: None,
    style: str = "auto",
    answer_tokens: int = ANSWER_TOKENS,
    keep: Callable[[Sequence[Answer]], None] = lambda answers: None,
) -> list[Answer]:
    """Return all graded answers: greedy ones, then ``num_samples`` sampled ones per question.

    Each mode is one call of the sampler, with all examinees' rows in one batch. A prompt that is too long for the
    base gets no answer (verdict ``too-large``). ``begin`` is called with a description when a phase begins, ``keep``
    with all answers so far after each mode. In a style other than the run's, answers may have ``answer_tokens`` tokens.
    """
    engine, limits = examination.engine, examination.engine.limits
    is_chat_model = bool(getattr(engine.tokenizer, "chat_template", None))
    forms = [styled(style, q, engine.prompt_format, is_chat_model) for q in questions]
    posed = list(zip(questions, forms, strict=True))
    stops = tuple(dict.fromkeys(stop for q, form in posed for stop in stops_of(q, form)))
    length = limits.solve_new_tokens
    if any(form != engine.prompt_format or not isinstance(q, TaskQuestion) for q, form in posed):
        length = min(max(length, answer_tokens), limits.max_positions // 2)
    prompts = [form.encode(engine.tokenizer, prompt_for(q, form)) for q, form in posed]
    longest = limits.max_positions - length
    asked = [number for number, prompt in enumerate(prompts) if len(prompt) <= longest]
    answers: list[Answer] = []
    modes = [("greedy", 0.0, 1)] + ([("sampled", temperature, num_samples)] if num_samples else [])
    for mode, heat, count in modes:
        pairs = [(examinee, number) for examinee in examination.examinees for number in asked]
        requests = [
            Request(examinee.slot, prompts[number], count, request_seed(EVALUATION_SEED, examinee.slot, number))
            for examinee, number in pairs
        ]
        begin(f"answering, {mode}")
        groups = engine.sampler(heat, length, stops).sample(requests)
        begin(f"grading, {mode}")
        read = [
            (examinee, number, sample, completion, completion_text(engine.tokenizer, completion, stops))
            for (examinee, number), group in zip(pairs, groups, strict=True)
            for sample, completion in enumerate(group)
        ]
        parsed = [read_answer(questions[n], forms[n], text, one.finished) for _, n, _, one, text in read]
        grades = judge.grade([(questions[n], one) for (_, n, *_), one in zip(read, parsed, strict=True)])
        answers += [
            Answer(e.name, e.role, questions[n].id, mode, sample, text, one, len(c.tokens), c.finished, grade)
            for (e, n, sample, c, text), one, grade in zip(read, parsed, grades, strict=True)
        ]
        too_long = Grade(False, "too-large", "the prompt does not fit the base")
        answers += [
            Answer(e.name, e.role, questions[number].id, mode, sample, "", None, 0, False, too_long)
            for e in examination.examinees
            for number in range(len(questions))
            if len(prompts[number]) > longest
            for sample in range(count)
        ]
        keep(answers)
    return answers


def results(answers: Sequence[Answer], questions: Sequence[Question], num_samples: int) -> dict[str, Any]:
    """Return each examinee's scores, and for each role their mean, spread, worst and best."""
    examinees = list(dict.fromkeys((answer.examinee, answer.role) for answer in answers))
    clusters = clusters_of(questions)
    members: list[dict[str, Any]] = []
    for name, role in examinees:
        own = [answer for answer in answers if answer.examinee == name]
        greedy = [answer for answer in own if answer.mode == "greedy"]
        summary = summary_of([one.grade for one in greedy], [clusters[one.question] for one in greedy])
        member: dict[str, Any] = {"name": name, "role": role, "greedy": summary}
        if num_samples:
            member["pass_at_k"] = _pass_at_ks(own, questions, num_samples)
        members.append(member)
    roles = list(dict.fromkeys(role for _, role in examinees if role not in ("base", "adapter")))
    population = {role: _population([m for m in members if m["role"] == role], answers, questions) for role in roles}
    for role, facts in population.items():
        if num_samples and facts["num_members"] > 1:
            facts["coverage"] = _coverage([a for a in answers if a.role == role], questions, num_samples)
    return {"num_items": len(questions), "members": members, "population": population}


def _ks(num_samples: int) -> list[int]:
    return sorted({1 << power for power in range(num_samples.bit_length())} | {num_samples})


def _marks(answers: Iterable[Answer], questions: Sequence[Question], mode: str = "sampled") -> dict[str, list[bool]]:
    """Return, by question, whether each answer of a mode is right, without lost answers."""
    marks: dict[str, list[bool]] = {question.id: [] for question in questions}
    for answer in answers:
        if answer.mode == mode and not answer.grade.lost:
            marks[answer.question].append(answer.grade.correct)
    return marks


def _coverage(answers: Sequence[Answer], questions: Sequence[Question], num_samples: int) -> dict[str, Any]:
    """Return, by k, the share of questions solved in k attempts: split evenly over all members, or by one member.

    If c of n attempts are right, k of them contain a right one with p(k) = 1 - C(n - c, k) / C(n, k); m members
    together have 1 - prod (1 - p_j(k / m)). ``one`` is the mean over the members, ``gain`` the paired difference.
    """
    names = list(dict.fromkeys(answer.examinee for answer in answers))
    by_member = [_marks([a for a in answers if a.examinee == name], questions) for name in names]
    clusters, found = clusters_of(questions), dict[str, Any]()
    for k in (k for k in _ks(num_samples) if k % len(names) == 0):
        known = [q.id for q in questions if all(len(marks[q.id]) >= k for marks in by_member)]
        if not known:
            continue
        solved = [[(len(m[name]), sum(m[name])) for m in by_member] for name in known]
        together = [1 - math.prod(1 - pass_at_k(n, c, k // len(names)) for n, c in own) for own in solved]
        one = [statistics.fmean(pass_at_k(n, c, k) for n, c in own) for own in solved]
        gains = [a - b for a, b in zip(together, one, strict=True)]
        interval = bootstrap_mean(gains, np.random.default_rng(EVALUATION_SEED), [clusters[name] for name in known])
        found[str(k)] = {
            "together": statistics.fmean(together),
            "one": statistics.fmean(one),
            "gain": statistics.fmean(gains),
            "interval": list(interval),
            "num_items": len(known),
        }
    return found


def _pass_at_ks(answers: Sequence[Answer], questions: Sequence[Question], num_samples: int) -> dict[str, Any]:
    """Return pass@k for k = 1, 2, 4... and ``num_samples``, each with a bootstrap interval over items."""
    counts = _marks(answers, questions)
    clusters = clusters_of(questions)
    found: dict[str, Any] = {}
    for k in _ks(num_samples):
        known = {name: marks for name, marks in counts.items() if len(marks) >= k}
        values = [pass_at_k(len(marks), sum(marks), k) for marks in known.values()]
        interval = bootstrap_mean(values, np.random.default_rng(EVALUATION_SEED), [clusters[name] for name in known])
        mean = statistics.fmean(values) if values else None
        found[str(k)] = {"mean": mean, "interval": list(interval) if values else None, "num_items": len(values)}
    return found


def _population(
    members: Sequence[dict[str, Any]], answers: Sequence[Answer], questions: Sequence[Question]
) -> dict[str, Any]:
    """Return mean (with an interval over items), spread over members, worst and best of the greedy scores."""
    scores = {m["name"]: m["greedy"]["score"] for m in members}
    known = {name: score for name, score in scores.items() if score is not None}
    if not known:
        return {"num_members": len(scores), "mean": None}
    marks = _marks((answer for answer in answers if answer.examinee in known), questions, "greedy")
    graded = {name: statistics.fmean(own) for name, own in marks.items() if own}
    rng = np.random.default_rng(EVALUATION_SEED)
    clusters = clusters_of(questions)
    interval = bootstrap_mean(list(graded.values()), rng, [clusters[name] for name in graded])
    worst, best = min(known, key=lambda name: known[name]), max(known, key=lambda name: known[name])
    return {
        "num_members": len(scores),
        "mean": statistics.fmean(known.values()),
        "interval": list(interval),
        "spread": statistics.stdev(known.values()) if len(known) > 1 else None,
        "worst": {"name": worst, "score": known[worst]},
        "best": {"name": best, "score": known[best], "note": BEST_NOTE},
    }


def table(found: dict[str, Any]) -> str:
    """Return the results as lines of text."""
    lines = [f"{found['suite']}: {found['num_items']} items, greedy pass@1 with 95 % intervals"]
    for member in found["members"]:
        greedy, passes = member["greedy"], member.get("pass_at_k", {})
        more = "".join(f"  pass@{k} {_percent(one['mean'])}" for k, one in passes.items())
        name = f"{member['name']} ({member['role']})" if member["role"] != member["name"] else member["name"]
        lines.append(f"  {name:<20} {_percent(greedy['score'])}  {_range(greedy['interval'])}{more}")
    for role, facts in found["population"].items():
        if facts["mean"] is None:
            continue
        spread = "" if facts["spread"] is None else f", spread {_percent(facts['spread'])}"
        lines.append(
            f"  {role}: mean {_percent(facts['mean'])} {_range(facts['interval'])}{spread}, "
            f"worst {facts['worst']['name']} {_percent(facts['worst']['score'])}, "
            f"best {facts['best']['name']} {_percent(facts['best']['score'])} ({BEST_NOTE})"
        )
        for k, one in facts.get("coverage", {}).items():
            lines.append(
                f"  {role}s together: {_percent(one['together'])} solved in {k} attempts, one alone "
                f"{_percent(one['one'])}, gain {_range(one['interval'])}"
            )
    return "\n".join([*lines, f"  answers: {found['answers'] or 'not kept; --out FILE keeps them'}"])


def _percent(share: float | None) -> str:
    return "    -" if share is None else f"{100 * share:5.1f} %"


def _range(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"


def _default_path(target: str, suite: str, examination: Examination) -> Path | None:
    """Return the default path of the answers: in the run directory; None for other targets."""
    return Path(target) / EVALUATIONS / f"{suite}-{examination.where}.jsonl" if examination.of_run else None


def _refuse_unwritable(path: Path) -> None:
    """Make the folder of ``path``; raise UserError, before anything is sampled, if no file can be written there.

    A folder ``evaluations`` that is a link is refused: a run's folder is untrusted, and the link could lead elsewhere.
    """
    if path.parent.name == EVALUATIONS and path.parent.is_symlink():
        raise UserError(f"{path.parent} is a link, but answers are written there: replace it by a folder")
    with naming_remedy(f"--out {path} cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass


def _write(path: Path, answers: Sequence[Answer]) -> None:
    with naming_remedy(f"--out {path} cannot be written"):
        write_whole(path, "".join(answer.as_line() for answer in answers))


def show(found: dict[str, Any]) -> None:
    """Print the table on standard error and the results as JSON on standard output."""
    print(table(found), file=sys.stderr)
    print(json.dumps(found, indent=2))
