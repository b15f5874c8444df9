"""Fields that configs had in earlier versions: why each was removed, and the value at which it had no effect.

A config that names one is refused with the reason. The config of an earlier run is read without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Removed(NamedTuple):
    """A removed field: the value that has the effect of today's code, and the reason for its removal."""

    neutral: object
    reason: str


NEVER_SHOWN = "no experiment has shown that it helps"
CONSTANT = "it is a constant now, as no run changed it"
UNLIKE = "two adapters together do not solve more than one with as many attempts"

REMOVED: dict[str, Removed] = {
    "run.num_checkpoints_kept": Removed(2, CONSTANT),
    "match.pfsp_exponent": Removed(1.0, CONSTANT),
    "learn.warmup_steps": Removed(0, CONSTANT),
    "learn.max_grad_norm": Removed(1.0, CONSTANT),
    "learn.old_logprobs": Removed("recompute", "learn.updates_per_step decides whose log-probabilities count"),
    "evolve.crossover_frac": Removed(0.5, CONSTANT),
    "evolve.num_elite": Removed(1, "it never acted: the least fit leave, and at least one stays"),
    "evaluate.part": Removed("all", "all items are scored; a part is chosen by `redqueen evaluate --data`"),
    "distill.num_epochs": Removed(2, CONSTANT),
    "learn.kl_to": Removed("base", "the divergence is measured from the base; references were never shown to help"),
    "learn.reference_every_steps": Removed(0, "references were removed"),
    "learn.reference_resets_moments": Removed(False, "references were removed"),
    "learn.reference_merged": Removed(False, "references were removed"),
    "learn.average_decay_frac": Removed(0.0, NEVER_SHOWN),
    "learn.average_plays": Removed(False, "averages of members were removed"),
    "evolve.merged_parent": Removed(False, NEVER_SHOWN),
    "propose.buffer_scope": Removed("shared", NEVER_SHOWN),
    "evolve.hindsight_tasks": Removed(0, "it selected nothing and cost as much as a probe"),
    "solve.first_attempts": Removed(0, NEVER_SHOWN),
    "learn.min_informative_groups": Removed(0, NEVER_SHOWN),
    "learn.drop_dead_groups": Removed(False, NEVER_SHOWN),
    "learn.negative_weight": Removed(1.0, "0 missed its bound in its experiment"),
    "learn.shared_weight": Removed(0.0, "distillation teaches all students the verified answers of all"),
    "learn.entropy_weight": Removed(0.0, NEVER_SHOWN),
    "cluster.start_s": Removed(600.0, "a shard may take five times cluster.silence_s to load its base"),
    "cluster.num_losses_of_a_call": Removed(3, "it is 3, since a call that loses more shards is at fault itself"),
    "cluster.num_losses": Removed(100, "it is 100 in a session; `redqueen resume` begins another"),
    "solve.replay_frac": Removed(0.0, NEVER_SHOWN),
    "match.teachers_per_step": Removed(0, "no run needed it: all teachers take part in every step"),
    "population.resting_folder": Removed("", "no run needed it: all members are held in memory"),
    "verify.refuse_copy": Removed(False, "it refused 6 % of honest programs, and no run used it"),
    "evolve.num_islands": Removed(1, NEVER_SHOWN),
    "evolve.migrate_every_steps": Removed(50, "evolve.num_islands was removed"),
    "match.payoff_decay_frac": Removed(0.95, "the matrix of payoffs was read by evolve.replacement = crowding alone"),
    "evolve.children_per_birth": Removed(1, NEVER_SHOWN),
    "run.milestone_every_steps": Removed(100, "checkpoints at multiples of 100 steps are kept for good"),
    "run.product_candidates": Removed(32, "it follows from how students learn"),
    "match.rating_mu": Removed(25.0, CONSTANT),
    "match.rating_sigma": Removed(25.0 / 3, CONSTANT),
    "match.rating_beta": Removed(25.0 / 6, CONSTANT),
    "match.rating_tau": Removed(25.0 / 300, CONSTANT),
    "match.draw_frac": Removed(0.1, CONSTANT),
    "evolve.tournament_size": Removed(2, CONSTANT),
    "evolve.probe_attempts": Removed(2, CONSTANT),
    "evolve.archive_capacity": Removed(512, "the archive has four places for each of run.product_tasks"),
    "evolve.payoff_window": Removed(10, "payoffs and rewards are averaged over evolve.every_steps"),
    "evolve.gene_factor": Removed(1.25, CONSTANT),
    "evolve.replacement": Removed("worst_fraction", "a small evolve.replaced_frac replaces one member"),
    "evolve.child_moments": Removed("reset", NEVER_SHOWN),
    "propose.reject_duplicates": Removed(True, "duplicates are always refused"),
    "propose.class_decay_frac": Removed(0.95, CONSTANT),
    "propose.buffer_per_teacher": Removed(False, "propose.buffer_capacity sets the size of the buffer"),
    "verify.num_hash_seeds": Removed(2, CONSTANT),
    "verify.num_shown": Removed(5, CONSTANT),
    "learn.teacher_rate_factor": Removed(1.0, NEVER_SHOWN),
    "learn.student_rate_factor": Removed(1.0, NEVER_SHOWN),
    "learn.baseline_decay_frac": Removed(0.9, CONSTANT),
    "learn.beta1": Removed(0.9, CONSTANT),
    "learn.beta2": Removed(0.99, CONSTANT),
    "learn.weight_decay": Removed(0.0, CONSTANT),
    "evaluate.max_members": Removed(0, "at most 32 students are scored, and one where all are equal"),
    "propose.top_p": Removed(1.0, "the learner knows the whole distribution"),
    "solve.top_p": Removed(1.0, "the learner knows the whole distribution"),
    "sampler.max_requests": Removed(128, CONSTANT),
    "sampler.answer_s": Removed(600.0, CONSTANT),
    "sampler.reconnect_s": Removed(600.0, CONSTANT),
    "sampler.importance_cap": Removed(2.0, CONSTANT),
    "sampler.canary_tolerance": Removed(0.2, CONSTANT),
    "cluster.silence_s": Removed(120.0, CONSTANT),
    "learn.decay_floor_frac": Removed(0.05, CONSTANT),
    "evolve.space": Removed("delta", "children depended on how an adapter is written, not on what it does"),
    "evolve.preserve_norm": Removed(False, NEVER_SHOWN),
    "sampler.load_s": Removed(60.0, "one limit bounds answers and the loading of adapters"),
    "learn.length_neutral": Removed(False, "it did not keep answers longer in its experiment"),
    "distill.max_answers": Removed(0, "a run keeps at most 50,000 answers to distil"),
    "distill.balanced": Removed(False, "it left out three quarters of the answers, and products were worse for it"),
    "propose.num_niches": Removed(0, NEVER_SHOWN),
    "match.ratings": Removed("common", NEVER_SHOWN),
    "distill.diets": Removed("shared", UNLIKE),
    "distill.student_answers": Removed("shared", UNLIKE),
    "solve.students_per_task": Removed(1, UNLIKE),
}
"""By ``section.field``."""


def why_removed(field: str) -> str:
    """Return a clause on the removal of ``section.field``, "" where it was not removed."""
    return f"{field} was removed ({REMOVED[field].reason}): leave it out" if field in REMOVED else ""


def without_removed(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an earlier run's plain config without removed fields, and clauses on those that had an effect."""
    kept: dict[str, Any] = {}
    effects: list[str] = []
    for section, fields in data.items():
        if not isinstance(fields, Mapping):
            kept[section] = fields
            continue
        kept[section] = {name: value for name, value in fields.items() if f"{section}.{name}" not in REMOVED}
        for name in sorted(fields.keys() - kept[section].keys()):
            if fields[name] != (gone := REMOVED[f"{section}.{name}"]).neutral:
                effects.append(f"{section}.{name} = {fields[name]!r} ({gone.reason})")
    return kept, effects
