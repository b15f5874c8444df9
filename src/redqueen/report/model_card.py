"""The model card of an exported member: lineage, rating, scores, and how to load it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from redqueen import __version__
from redqueen.adapters.base_shape import DEQUANTIZED, EMBEDDED_ID, OWN_BASE, BaseIdentity
from redqueen.config import EMBEDDED, Config
from redqueen.config.load import without_folders
from redqueen.display import literal, markdown_table
from redqueen.domains.frames import BOS, fence
from redqueen.domains.prompt_format import FRAMES, PromptFormat
from redqueen.domains.registry import DOMAINS
from redqueen.evaluate.external import items_of
from redqueen.journal.schema import ALL, BASE, CONTROL, DISTILLED, EXAMPLE, PRODUCT
from redqueen.journal.untrusted import Row
from redqueen.report.summary import product_name
from redqueen.report.view import read_run

MAX_ANCESTORS = 40

LOAD_ADAPTER = """from peft import PeftModel  # pip install peft
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = {folder}  # the path of this card's folder; from the hub: huggingface_hub.snapshot_download("owner/name")
base = AutoModelForCausalLM.from_pretrained({base}{options})
tokenizer = AutoTokenizer.from_pretrained({base})
model = PeftModel.from_pretrained(base, folder)"""

LOAD_MERGED = """from transformers import AutoModelForCausalLM, AutoTokenizer

folder = {folder}  # the path of the folder that this card is in, or its name on the hub
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)"""

TURN = 'tokenizer.apply_chat_template([{"role": "user", "content": prompt}], add_generation_prompt=True, '
TURN += 'return_dict=True, return_tensors="pt")'

PROMPT = """prompt = (
{lines}
)
asked = {asked}
written = model.generate(**asked, max_new_tokens={most}, do_sample=False{stops})
print(tokenizer.decode(written[0, asked["input_ids"].shape[1] :]))"""


def model_card(
    run_dir: Path,
    config: Config,
    member: str,
    base: BaseIdentity,
    merged: bool,
    step: int,
    folder: str,
    sources: Sequence[str] = (),
) -> str:
    """Return the card of ``member`` as it was after ``step`` (the checkpoint's), as markdown with a YAML head.

    ``sources``: the members that a product was made from (its mean or distillation). The code in the card loads
    ``folder``. Ids and names are shown literally; nothing in the card was written by a model.
    """
    full_name, view, base = base.name, read_run(run_dir), replace(base, name=without_folders(base.name))
    run, members = view.run, {row["id"]: row for row in view.individuals}
    is_product = product_name(view.metrics, step) == member
    shown = (member if member in members or not is_product else PRODUCT, BASE, CONTROL)
    births = {row["child"]: (row, parents) for row, parents in view.births}
    ratings = [row for row in view.ratings if row["individual"] == member and row["step"] <= step]
    own = [row for row in view.evaluations if row["individual"] in shown and row["step"] <= step]
    scores = [row for row in own if row["stratum"] == row["kind"] == ALL]
    roles = {"teacher": "a teacher", "student": "a student", "both": "a teacher and student"}
    made_as = "distilled from the right answers" if member == DISTILLED else "a mean in delta space"
    role = roles[members[member]["role"]] if member in members else f"{made_as} of {', '.join(sources)}"
    parts = [
        _head(base.name, merged),
        f"# {literal(member)}, {role} of the run {literal(run.name)}",
        f"A member of a population ({literal(run.arm)}, seed {run.rng_seed}) trained by redqueen {__version__} in "
        "asymmetric self-play: teachers write tasks, students solve them, a sandboxed verifier judges. "
        f"This is its state after step {step}. "
        + ("The adapter is merged into the base." if merged else f"A LoRA adapter for {_code(base.name)}.")
        + (f" The base's weights have the SHA-256 {_code(base.sha256)}." if base.sha256 else ""),
        "## Load it",
        *(["The run's base was in a folder of this name: set `base_path`."] * (full_name != base.name and not merged)),
        "```python\n" + _loading(base.name, merged, full_name != base.name, json.dumps(folder)) + "\n```",
        "## Prompt it",
        _prompt_text(config, dict(view.metrics.get(EXAMPLE, ())).get(step) if is_product else None),
        "## Rating",
        _rating_text(ratings),
        "## Lineage",
        _lineage_text([member] if member in members else list(sources), members, births),
        "## External fitness",
        _fitness_text(scores),
        "## Training",
        "The run's resolved config:",
        "```json\n" + json.dumps(run.config, indent=1, sort_keys=True) + "\n```",
        "Made with: " + ", ".join(f"{literal(n)} {literal(v)}" for n, v in sorted(run.versions.items())) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _head(base: str, merged: bool) -> str:
    own = base.startswith(EMBEDDED_ID)
    lines = ["license: mit"] if own else ["license: other", "license_name: license-of-the-base-model"]
    lines += [f"library_name: {'transformers' if merged else 'peft'}", "pipeline_tag: text-generation"]
    if "/" in base and not base.startswith(("/", ".", "~")):
        lines.insert(0, f"base_model: {json.dumps(base)}")
        lines.append(f"base_model_relation: {'merge' if merged else 'adapter'}")
    return "\n".join(["---", *lines, "tags:", "- redqueen", "- self-play", *([] if merged else ["- lora"]), "---"])


def _loading(base: str, merged: bool, is_local: bool, folder: str) -> str:
    if merged:
        return LOAD_MERGED.format(folder=folder)
    if base.lower().endswith(".gguf"):
        file = f"{json.dumps(str(Path(base).parent))}, gguf_file={json.dumps(Path(base).name)}"
        return LOAD_ADAPTER.format(folder=folder, base=file, options=f", quantization_config={DEQUANTIZED}")
    if is_local:
        code = LOAD_ADAPTER.format(folder=folder, base="base_path", options="")
        return code.replace("base = ", f"base_path = {json.dumps(f'/path/to/{base}')}  # the base's folder\nbase = ", 1)
    own = f'f"{{folder}}/{OWN_BASE}"' if base.startswith(EMBEDDED_ID) else json.dumps(base)
    return LOAD_ADAPTER.format(folder=folder, base=own, options="")


def _prompt_text(config: Config, example: float | None) -> str:
    """Return the section on prompts, with code for the held-out item number ``example``, by default the first."""
    name = config.model.prompt_format
    if name == "auto":
        name = "compact" if config.model.base == EMBEDDED else "chat"
    form = PromptFormat(FRAMES[name], config.verify)
    domain = next((DOMAINS[own] for own in config.propose.domains if own in DOMAINS), DOMAINS["code"])
    items = items_of(config) if DOMAINS.keys() >= set(config.propose.domains) else ()
    task, remark = items[0].task if items else domain.seed, "The base model may answer it correctly as well."
    if example is not None and 0 <= example < len(items):
        task = items[int(example)].task
        remark = "In the run's evaluation this held-out item was answered right with the adapter and wrong without it."
    turn = name in ("compact", "chat", "plain")
    how = "the content of the user's turn in the chat template" if turn else "the text that the model continues"
    lines = form.solve(task).removeprefix(BOS).splitlines(keepends=True)
    code = PROMPT.format(
        lines="\n".join(f"    {line!r}" for line in lines),
        asked=TURN if turn else 'tokenizer(prompt, return_tensors="pt")',
        most=config.solve.max_new_tokens,
        stops=f", stop_strings={list(form.stops)}, tokenizer=tokenizer" if form.stops else "",
    )
    return (
        f"The format is {_code(name)}, the temperature of training {config.solve.temperature}. A prompt is {how}. "
        f"Run this after the code above to get one answer; for your own question, change its end. {remark}\n\n"
        f"{fence('python', code)}"
    )


def _rating_text(ratings: Sequence[Row]) -> str:
    if not ratings:
        return "None: the member had no match."
    last = ratings[-1]
    return (
        f"Mean {last['mu']:.2f}, standard deviation {last['sigma']:.2f} rating points after step {last['step']}. "
        "It is relative to its opponents in its own run and cannot be compared between runs."
    )


def _lineage_text(waiting: list[str], members: dict[str, Row], births: dict[str, tuple[Row, list[str]]]) -> str:
    rows: list[list[str]] = []
    seen = set[str]()
    while waiting and len(rows) < MAX_ANCESTORS:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        birth, parents = births.get(name, (None, []))
        change = "" if birth is None or birth["relative_change"] is None else f"{birth['relative_change']:.3f}"
        operator = members[name]["operator"] if name in members else ""
        rows.append(
            [name, str(members[name]["born_step"]) if name in members else "", operator, ", ".join(parents), change]
        )
        waiting += parents
    more = "" if not waiting else f"\n\nOlder ancestors are left out after {MAX_ANCESTORS}."
    note = "Each member with its parents; the change is that of its weight update relative to the first parent."
    return (
        f"{note}\n\n{markdown_table(['member', 'born at step', 'operator', 'parents', 'relative change'], rows)}{more}"
    )


def _fitness_text(scores: Sequence[Row]) -> str:
    if not scores:
        return "Not measured."
    last = {(row["individual"], row["mode"]): row for row in scores}
    rows = [
        [
            {BASE: "the base", CONTROL: "the base, prompted to think first"}.get(row["individual"], row["individual"]),
            row["mode"],
            str(row["step"]),
            str(row["num_items"]),
            _percent(row["mean_frac"]),
            f"{_percent(row['low_frac'])} to {_percent(row['high_frac'])}",
        ]
        for row in last.values()
    ]
    note = "Held-out items; members were never selected on them. Intervals are 95 % over the items."
    return f"{note}\n\n{markdown_table(['who', 'mode', 'step', 'items', 'right', 'interval'], rows)}"


def _percent(frac: float | None) -> str:
    return "-" if frac is None else f"{100 * frac:.1f} %"


def _code(text: str) -> str:
    return f"`{text.replace('`', '')}`"
