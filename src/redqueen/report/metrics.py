"""The names of the numbers of a run: title, unit, one sentence of explanation, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Direction = Literal["up", "down", "none"]
"""Which way is better; ``none``: neither, or it depends (a solve rate near 0 or 1 teaches nothing)."""


@dataclass(frozen=True)
class Metric:
    """How to show a number. ``unit`` is what stands at the axis; shares are fractions from 0 to 1."""

    title: str
    unit: str
    explanation: str
    direction: Direction = "none"


SHARE = "share (0 to 1)"

METRICS: dict[str, Metric] = {
    "match/num_matches": Metric("Matches", "matches", "Number of pairs of teacher and student in this step."),
    "match/expected_win_mean": Metric(
        "Expected win of the student",
        SHARE,
        "What the ratings say about the students' chances, mean over the matches; matchmaking favours 0.5.",
    ),
    "match/mu/{role}/{domain}": Metric(
        "Rating in {domain}, {role}",
        "rating points",
        "Mean rating of the role in this domain, where each is rated apart.",
    ),
    "propose/valid_frac": Metric(
        "Validity", SHARE, "Share of proposals that the verifier accepted as tasks; the others cost the teacher.", "up"
    ),
    "propose/valid_frac/{kind}": Metric(
        "Validity of {kind}", SHARE, "Share of the proposals of this kind that the verifier accepted as tasks.", "up"
    ),
    "propose/unique_frac": Metric(
        "Unlike the others", SHARE, "Share of a step's valid tasks whose program stands only once in the step.", "up"
    ),
    "propose/entropy": Metric(
        "Entropy, teachers",
        "nats a token",
        "Mean entropy of the teachers' next-token distribution; near 0 they write one thing for ever.",
    ),
    "propose/tokens_mean": Metric("Length of a proposal", "tokens", "Mean number of tokens that a proposal took."),
    "propose/rejected/{reason}": Metric(
        "Rejected: {reason}", "proposals", "How many proposals of the step were rejected for this reason.", "down"
    ),
    "curriculum/ast_depth": Metric(
        "Depth of the syntax tree",
        "levels",
        "Longest path in the program's abstract syntax tree, mean over valid tasks: how deeply things are nested.",
    ),
    "curriculum/cyclomatic": Metric(
        "Cyclomatic complexity",
        "paths",
        "One more than the number of decisions in the program, mean over valid tasks: how many ways lead through it.",
    ),
    "curriculum/lines": Metric(
        "Lines", "lines", "Lines of the program that are neither blank nor comment, mean over valid tasks."
    ),
    "curriculum/variables": Metric("Variables", "names", "Distinct variables in the program, mean over valid tasks."),
    "curriculum/coverage": Metric(
        "Coverage", "distinct tasks", "How many tasks that behave differently have been posed so far.", "up"
    ),
    "curriculum/classes": Metric(
        "Classes of task",
        "classes",
        "How many combinations of kind, types and constructs have been posed so far.",
        "up",
    ),
    "curriculum/coverage/{domain}": Metric(
        "Coverage of {domain}",
        "distinct tasks",
        "How many tasks of this domain that behave differently were posed.",
        "up",
    ),
    "curriculum/classes/{domain}": Metric(
        "Classes of {domain}", "classes", "How many classes of this domain's tasks have been posed so far.", "up"
    ),
    "curriculum/share/{domain}": Metric(
        "Share of {domain}", SHARE, "Share of a step's valid tasks that are of this domain."
    ),
    "curriculum/solve_rate/{domain}": Metric(
        "Solve rate in {domain}",
        SHARE,
        "Mean over this domain's tasks of the share of attempts that were right.",
    ),
    "propose/novel_frac": Metric(
        "New classes", SHARE, "Share of a step's valid tasks whose class had never been posed before.", "up"
    ),
    "propose/crowd_frac": Metric(
        "Crowding",
        SHARE,
        "Share of all recent tasks that are of the same class, mean over a step's valid tasks; at 1 all are of one.",
        "down",
    ),
    "propose/size_hardness": Metric(
        "Hard by size",
        SHARE,
        "How much less than others of their kind tasks of the same size were solved, mean over a step's valid tasks: "
        "hardness that length, arithmetic and large numbers alone explain.",
        "down",
    ),
    "solve/rate": Metric(
        "Solve rate",
        SHARE,
        "Mean over tasks of the share of attempts that were right. Near 0 or 1 there is nothing to learn from, and "
        "an arms race shows as a rate that neither rises to 1 nor falls to 0.",
    ),
    "solve/rate/{kind}": Metric(
        "Solve rate of {kind}", SHARE, "Mean over tasks of this kind of the share of judged attempts that were right."
    ),
    "solve/thought_frac": Metric(
        "Thought first", SHARE, "Share of attempts in which the student wrote down its thinking before the answer."
    ),
    "solve/entropy": Metric(
        "Entropy, students", "nats a token", "Mean entropy of the students' next-token distribution while they solve."
    ),
    "solve/tokens_mean": Metric("Length of an attempt", "tokens", "Mean number of tokens that an attempt took."),
    "solve/unparsable_frac": Metric(
        "Unparsable answers", SHARE, "Share of attempts from which no answer could be read.", "down"
    ),
    "reward/teacher_mean": Metric(
        "Reward, teachers",
        "reward (-1 or more)",
        "Mean reward of proposals: -1 invalid, else one minus the solve rate, as the config's rewards change it.",
    ),
    "reward/student_mean": Metric(
        "Reward, students",
        "reward (-1 to 1)",
        "Mean over tasks of the mean reward of their attempts: 1 right, -0.5 wrong, -1 unreadable.",
    ),
    "learn/teacher/loss": Metric(
        "Policy loss, teachers", "loss", "The clipped policy-gradient loss, mean over teachers."
    ),
    "learn/student/loss": Metric(
        "Policy loss, students", "loss", "The clipped policy-gradient loss, mean over students."
    ),
    "learn/teacher/grad_norm": Metric(
        "Gradient, teachers", "norm", "Length of the gradient before clipping, mean over teachers."
    ),
    "learn/student/grad_norm": Metric(
        "Gradient, students", "norm", "Length of the gradient before clipping, mean over students."
    ),
    "learn/teacher/clip_frac": Metric(
        "Clipped, teachers", SHARE, "Share of tokens whose probability moved beyond the clip range."
    ),
    "learn/student/clip_frac": Metric(
        "Clipped, students", SHARE, "Share of tokens whose probability moved beyond the clip range."
    ),
    "learn/teacher/kl": Metric(
        "Divergence, teachers", "nats a token", "How far teachers are from their reference, over tokens learned from."
    ),
    "learn/student/kl": Metric(
        "Divergence, students", "nats a token", "How far students are from their reference, over tokens learned from."
    ),
    "learn/teacher/stepped_frac": Metric(
        "Stepped, teachers", SHARE, "Share of the teachers with samples that were stepped."
    ),
    "learn/student/stepped_frac": Metric(
        "Stepped, students", SHARE, "Share of the students with samples that were stepped."
    ),
    "learn/mismatch/mean_abs/{member}": Metric(
        "Mismatch, {member}", "nats a token", "Mean difference of the server's log-probabilities and the learner's."
    ),
    "learn/mismatch/max_abs/{member}": Metric(
        "Largest mismatch, {member}", "nats", "Largest difference of the server's log-probabilities and the learner's."
    ),
    "learn/mismatch/kl/{member}": Metric(
        "Mismatch as a divergence, {member}", "nats a token", "Estimated divergence of the learner from the server."
    ),
    "learn/mismatch/truncated_frac/{member}": Metric(
        "Truncated, {member}", SHARE, "Share of tokens whose importance weight was cut at its cap."
    ),
    "evolve/probe_rate": Metric(
        "Probe", SHARE, "Share of a probe of archived tasks of all ages that the students solved, mean over students."
    ),
    "evolve/probe_tokens": Metric("Length of a probe", "tokens", "Tokens that the probes of a generation took."),
    "product/share/{member}": Metric(
        "Last probe, {member}", SHARE, "Share of the last probe that a candidate for the run's product solved."
    ),
    "product/chosen/{member}": Metric("Product: {member}", "1: yes", "This candidate is the product of the run."),
    "distill/answers": Metric("Distilled answers", "answers", "Verified answers that were distilled."),
    "distill/tokens": Metric("Tokens of distilled answers", "tokens", "Tokens of these answers."),
    "distill/first_nats": Metric(
        "Loss of the first epoch", "nats", "Mean cross-entropy of an answer's token in the first epoch.", "down"
    ),
    "distill/last_nats": Metric(
        "Loss of the last epoch", "nats", "Mean cross-entropy of an answer's token in the last epoch.", "down"
    ),
    "evolve/births": Metric("Births", "individuals", "How many members were replaced by a child in this step."),
}

PHASES = ("match", "propose", "verify", "solve", "learn", "distill", "evolve", "product", "evaluate", "checkpoint")
"""The phases of a step in their order, as they stand in the journal's table of times."""


def describe(name: str) -> Metric:
    """Return how to show the metric ``name``; placeholders in the registry stand for one part of a name.

    A name that the registry does not know is shown as it is, without unit or explanation.
    """
    if name in METRICS:
        return METRICS[name]
    parts = name.split("/")
    for pattern, metric in METRICS.items():
        wanted = pattern.split("/")
        if len(wanted) == len(parts) and all(w.startswith("{") or w == p for w, p in zip(wanted, parts, strict=True)):
            title = metric.title.format(**{w.strip("{}"): p for w, p in zip(wanted, parts, strict=True) if w[0] == "{"})
            return Metric(title, metric.unit, metric.explanation, metric.direction)
    return Metric(name, "", "")
