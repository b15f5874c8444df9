"""The presets: configs that come with redqueen and are named without a path, as in ``redqueen train smoke``."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from redqueen.errors import UserError

_FOLDERS = (Path(__file__).parents[1] / "presets", Path(__file__).parents[3] / "configs")
"""Where they are in an installed package, and in a clone."""


def presets() -> dict[str, Path]:
    """Return the files of the presets by name."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return {path.stem: path for path in sorted(folder.glob("*.toml"))} if folder else {}


def find_config(config: Path) -> Path:
    """Return the file that is meant by a path or by a preset's name; a file of that name goes first.

    Raises UserError, naming the presets, when there is neither.
    """
    if config.is_file():
        return config
    known = presets()
    if str(config) in known:
        return known[str(config)]
    if config.is_dir():
        return config  # which reading it then says
    meant = did_you_mean(config.stem, list(known))
    raise UserError(
        f"no config file at {config}, and no preset of that name{meant}: the presets are {', '.join(known) or 'none'}, "
        "and `redqueen init > my.toml` writes a file of your own"
    )


def did_you_mean(word: str, known: list[str]) -> str:
    """Return " (did you mean ...?)" with the known word that is nearest, or ""."""
    near = get_close_matches(word, known, 1)
    return f" (did you mean {near[0]}?)" if near else ""
