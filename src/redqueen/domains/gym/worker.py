"""Reasoning Gym's generators and graders. This module runs in the sandbox or in a separate process, never in a run's.

Parameters and answers are text that a model wrote. A generator may loop or exhaust the memory, and a grader may
evaluate an answer, so both are sandbox jobs. The sandbox cannot open files: ``warm_up`` reads those of all families.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dataclasses
import functools
import importlib
import io
import json
import random
import re
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy
import pyfiglet
import reasoning_gym
import sympy
from reasoning_gym.coaching.attributes import AttributeDefinition
from reasoning_gym.cognition import figlet_fonts
from reasoning_gym.data import get_data_file_path, read_data_file
from reasoning_gym.factory import CURRICULA, DATASETS

GOLD_FIELDS = "possible_answer", "example_answer", "example_correct_answer"
"""Metadata fields with a right answer for entries whose ``answer`` is None because several answers are right."""
LATE_IMPORTS = "sympy.physics.units", "sympy.polys.domains.old_fractionfield", "sympy.polys.domains.old_polynomialring"
"""Modules that sympy imports late, for certain expressions, when the sandbox cannot open files any more."""
SAFE = ast.List, ast.Tuple, ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.Call, ast.expr_context, ast.Constant
SYMPY_NAME = re.compile(r"\w|Symbol|Integer|Float|Rational|Abs|sqrt|exp|ln|log|pi|erf|(a|)(sin|cos|tan)h?|cot|sec|csc")
"""Syntax and names allowed in a text that a grader evaluates: numbers, strings, and expressions as sympy prints them
(ours). ``Integral`` is not allowed: the integral of the question would be its own answer."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _uses_given_numbers(answer: str, entry: dict[str, Any]) -> bool:
    metadata = entry["metadata"]
    is_plain = re.fullmatch(r"(?!.*(?:\*\s*\*|/\s*/))[\d\s+*/()-]+", answer)
    is_given = sorted(map(int, re.findall(r"\d+", answer))) == sorted(metadata["numbers"])
    return bool(is_plain and is_given and sympy.parse_expr(answer) == metadata.get("target", 24))


EXTRA_CHECKS: dict[str, Callable[[str, dict[str, Any]], bool]] = {
    "coin_flip": lambda answer, entry: abs(Fraction(answer) / Fraction(entry["answer"]) - 1) < 0.001,
    "complex_arithmetic": lambda answer, _: "nan" not in answer.lower(),
    "game_of_life_halting": lambda answer, entry: answer.strip() == str(entry["answer"]),
    "number_format": lambda answer, entry: abs(float(answer.replace(",", "")) - entry["metadata"]["solution"]) < 0.0005,
    "number_sorting": lambda answer, entry: (
        [*map(float, NUMBER.findall(answer))] == [*map(float, NUMBER.findall(entry["answer"]))]
    ),
    **dict.fromkeys(("countdown", "puzzle24"), _uses_given_numbers),
}
"""Additional checks of a right answer, where a grader accepts prefixes, NaN or other numbers (ours)."""
FIXED_FIELDS = {"seed", "size", "data_file"}
FIRST_HELD_OUT_SEED = 1_000_000_000
"""Seeds from this number on are for the held-out items; a teacher cannot choose them."""


def families() -> list[str]:
    """Return the names of all families, without ``composite``, which mixes others."""
    return sorted(set(DATASETS) - {"composite"})


def generate(family: str, parameters: str) -> tuple[str, str, str]:
    """Return ``("ok", question, answer)``, or a verdict, its reason and "".

    ``parameters``: a JSON object of fields of the family's config, and ``seed``. The family's grader accepts the
    answer. A task whose grader also accepts the question, ``{"0": 1}`` or "" is rejected as ``trivial``.
    """
    try:
        dataset, entry = _entry(family, parameters)
    except MemoryError:
        raise
    except Exception as error:  # each family has its own checks, most of them assertions
        return "invalid-parameters", f"{type(error).__name__}: {error}"[:200], ""
    gold = gold_of(entry)
    if gold is None or _score(dataset, gold, entry) < 1:
        return "no-answer", "the family's grader refuses its own answer" if gold else "no answer is given", ""
    for trivial in ("", '{"0": 1}', str(entry["question"])):
        if trivial != gold and _score(dataset, trivial, entry) >= 1:
            return "trivial", f"the family's grader accepts {trivial[:40]!r} for {gold[:40]!r}", ""
    return "ok", str(entry["question"]), gold


def score(family: str, parameters: str, answers: str) -> list[float]:
    """Return the grader's score (0..1) of each answer of a JSON list; an answer on which it raises scores 0."""
    dataset, entry = _entry(family, parameters)
    return [_score(dataset, answer, entry) for answer in json.loads(answers)]


def gold_of(entry: dict[str, Any]) -> str | None:
    """Return a right answer to an entry, or None."""
    known = [entry["answer"], *(entry.get("metadata", {}).get(name) for name in GOLD_FIELDS)]
    found = next((answer for answer in known if answer is not None), None)
    return found if found is None or isinstance(found, str) else json.dumps(found)


def describe(name: str) -> dict[str, Any]:
    """Return a family's category, the fields that a teacher can choose with their defaults, their numeric curriculum
    levels, and question and answer of the defaults with seed 1 (``error``: why there are none)."""
    config = DATASETS[name][1]
    defaults = {field.name: _plain(field) for field in dataclasses.fields(config) if field.name not in FIXED_FIELDS}
    fields = {field: value for field, value in defaults.items() if value is not None}
    verdict, question, answer = generate(name, '{"seed": 1}')
    return {
        "name": name,
        "category": DATASETS[name][0].__module__.split(".")[1],
        "fields": fields,
        "levels": {field: levels for field, levels in _levels(name).items() if field in fields},
        "question": question,
        "answer": answer,
        "error": "" if verdict == "ok" else f"{verdict}: {question}",
    }


def held_out(names: list[str], count: int, max_chars: int) -> list[dict[str, str]]:
    """Return ``count`` entries of each family from its defaults, with seeds that no teacher can choose; entries with a
    question or answer longer than ``max_chars`` are left out."""
    found = []
    for name in names:
        for number in range(count):
            chosen = json.dumps({"seed": FIRST_HELD_OUT_SEED + number})
            verdict, question, answer = generate(name, chosen)
            if verdict == "ok" and max(len(question), len(answer)) <= max_chars:
                found.append({"family": name, "parameters": chosen, "question": question, "answer": answer})
    return found


def _plain(field: dataclasses.Field[Any]) -> object:
    """Return the default of a field that can be chosen in JSON (a number, a bool or a list of texts), else None."""
    default = _default(field)
    if isinstance(default, bool | int | float):
        return default
    if isinstance(default, list | tuple) and default and all(type(part) is str for part in default):
        return list(default) if len(default) <= 12 else None
    return None


def _levels(name: str) -> dict[str, list[float]]:
    """Return the numeric levels of a family's curriculum by field."""
    found: dict[str, list[float]] = {}
    with contextlib.suppress(Exception):  # levels are optional, and some curricula raise
        attributes: dict[str, AttributeDefinition] = CURRICULA[name]().attributes if name in CURRICULA else {}
        for attribute in attributes.values():
            numbers = [level for level in attribute.levels if type(level) in (int, float)]
            for field in ("field_name", "lower_field_name", "upper_field_name"):
                if numbers and getattr(attribute, field, None):
                    found[getattr(attribute, field)] = numbers
    return found


def _entry(family: str, parameters: str) -> tuple[Any, dict[str, Any]]:
    """Return a family's data set of one entry, and the entry. Some families use the global random state."""
    dataset_class, config = DATASETS[family]
    chosen = dict(json.loads(parameters))
    random.seed(chosen["seed"])
    numpy.random.seed(chosen["seed"] % 2**32)
    kinds = {field.name: _default(field) for field in dataclasses.fields(config)}
    for name, value in chosen.items():
        if isinstance(kinds[name], tuple):
            chosen[name] = tuple(value)
    settings = config(**chosen, size=1)
    if hasattr(settings, "validate"):
        settings.validate()
    dataset = dataset_class(config=settings)
    return dataset, dataset[0]


def _default(field: dataclasses.Field[Any]) -> object:
    factory = field.default_factory
    return field.default if isinstance(factory, dataclasses._MISSING_TYPE) else factory()


def _score(dataset: Any, answer: str, entry: dict[str, Any]) -> float:
    """Return the grader's score. Nine graders evaluate the answer, some by sympy, so an answer could change its grade:
    ``eval`` is therefore limited to ``SAFE`` and sympy's names while they grade."""
    extra_check = EXTRA_CHECKS.get(entry.get("metadata", {}).get("source_dataset"), lambda *_: True)
    builtin_eval = builtins.eval
    builtins.eval = functools.partial(_eval_safely, builtin_eval)
    try:
        return float(dataset.score_answer(answer, entry)) if extra_check(answer, entry) else 0.0
    except MemoryError:
        raise
    except Exception:  # a grader that cannot read an answer has not accepted it
        return 0.0
    finally:
        builtins.eval = builtin_eval


def _eval_safely(builtin_eval: Callable[..., Any], text: str, *namespaces: dict[str, Any]) -> Any:
    for node in ast.walk(ast.parse(text.strip(), mode="eval").body):
        if not (SYMPY_NAME.fullmatch(node.id) if isinstance(node, ast.Name) else isinstance(node, SAFE)):
            raise ValueError("not a plain value")
    return builtin_eval(text, *namespaces)


def _caching_open(builtin_open: Callable[..., Any]) -> Callable[..., Any]:
    """Return a caching ``open``: a file that was read once is not opened again."""
    known: dict[tuple[str, bool], str | bytes] = {}

    def cached_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, int) or mode not in ("r", "rb", "rt"):
            return builtin_open(file, mode, *args, **kwargs)
        key = (str(file), "b" in mode)
        if key not in known:
            with builtin_open(file, mode, *args, **kwargs) as stream:
                known[key] = stream.read()
        text = known[key]
        return io.StringIO(text) if isinstance(text, str) else io.BytesIO(text)

    return cached_open


def warm_up() -> None:
    """Generate and grade one entry of each family: this loads all files and modules before the sandbox closes."""
    builtins.open = io.open = _caching_open(open)
    known = {function.__name__: functools.cache(function) for function in (get_data_file_path, read_data_file)}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith(reasoning_gym.__name__):
            vars(module).update({name: function for name, function in known.items() if hasattr(module, name)})
    for late in LATE_IMPORTS:
        importlib.import_module(late)
    pyfiglet.FigletFont.preloadFont = staticmethod(functools.cache(pyfiglet.FigletFont.preloadFont))
    for font in figlet_fonts.ALL_FONTS:
        pyfiglet.FigletFont.preloadFont(font)
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        for family in families():
            with contextlib.suppress(Exception):
                generate(family, '{"seed": 1}')
