"""Verified answers are shared: a right answer of one student is a checked example for the others.

An example is a completion with a constant advantage w: at ratio 1 its gradient is -w grad log-prob, that of supervised
learning with weight w. Only tasks that the answerer did not always solve are shared, since the rest teaches nothing,
and only with living students that did not solve them themselves. Ground: rejection-sampling fine-tuning (Yuan et al.
2023), across students: ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from redqueen.nouns import Completion, Individual, Rollout
from redqueen.solve.solving import Answered


def shared_rollouts(answered: Sequence[Answered], students: Sequence[Individual], weight: float) -> list[Rollout]:
    """Return one example for each task and each of ``students`` that has no right answer to it; none at weight 0.

    Of several right answers the shortest is shown, of equally short ones the first.
    """
    if weight == 0.0:
        return []
    shown: dict[str, tuple[Answered, Completion]] = {}
    solvers: dict[str, set[str]] = {}
    for one in answered:
        right = [one.completions[i] for i in one.kept if one.outcomes[i].grade.correct]
        if right:
            solvers.setdefault(one.task.id, set()).add(one.student.id)
        if right and len(right) < len(one.kept):
            best = min(right, key=lambda completion: len(completion.tokens))
            known = shown.get(one.task.id)
            if known is None or len(best.tokens) < len(known[1].tokens):
                shown[one.task.id] = (one, best)
    return [
        Rollout(student.slot, one.prompt, (completion,), (weight,))
        for task, (one, completion) in shown.items()
        for student in students
        if student.id not in solvers[task]
    ]
