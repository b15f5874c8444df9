"""What the pages publish is what the tables say."""

import re
import runpy
from functools import cache
from pathlib import Path

import pytest
from safetensors import safe_open

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "experiments" / "published_figures.py"))
FIGURES = SCRIPT["figures"]()
INTERVAL = re.compile(r"\(([-+]?[\d.]+) to ([-+]?\d+(?:\.\d+)?)")


@cache
def plain(page: str) -> str:
    """The text of a page on one line, without what stands between a value and its interval."""
    text = re.sub(r"\s+", " ", (ROOT / page).read_text(encoding="utf-8"))
    return re.sub(r"\*\*| points(?= \()|95 % interval |\+(?=\d)", "", text)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_each_page_states_the_figure_of_the_tables(figure) -> None:
    assert figure.text in plain(SCRIPT["RESULTS"]) + plain(SCRIPT["LOG"])
    for page in figure.pages:
        assert figure.text in plain(page), f"{page} does not state {figure.name}: {figure.text})"


@pytest.mark.parametrize("page", [SCRIPT[name] for name in ("README", "FAQ", "RESULTS", "LOG")])
def test_a_page_states_no_other_interval(page: str) -> None:
    known = {figure.text.rpartition("(")[2] for figure in FIGURES}
    stated = {f"{low} to {high}" for low, high in INTERVAL.findall(plain(page))}
    assert stated <= known


def test_the_arms_are_compared_as_the_statistics_say() -> None:
    """Three seeds of each: Welch's t with 3.8 degrees of freedom, rounded down, computed elsewhere."""
    held = next(figure for figure in FIGURES if "1T+1S held" in figure.name)
    first, second = (SCRIPT["product_means"](arm, range(3)) for arm in ("4T+4S", "1T+1S held"))
    assert held.value == pytest.approx(sum(first) / 3 - sum(second) / 3)
    assert held.low == pytest.approx(-0.01, abs=0.005)
    assert held.high == pytest.approx(0.77, abs=0.005)


@pytest.mark.parametrize("page", [SCRIPT[name] for name in ("README", "FAQ", "RESULTS", "LOG")])
def test_the_size_of_the_embedded_base_stands_where_its_scores_do(page: str) -> None:
    with safe_open(ROOT / "src/redqueen/embedded_base/model.safetensors", "np") as weights:
        sizes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    total = sum(size[0] * (size[1] if len(size) > 1 else 1) for size in sizes)
    assert f"{total / 1e6:.1f} million" in plain(page)
