"""``redqueen init``: a config file to start from, every field with its docstring as a comment.

A field that the preset does not set is commented out with ``#``; ``redqueen.fitting`` may fit it to the base.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from redqueen.config import Config, load_config
from redqueen.files import as_toml

WIDTH = 110


def config_text(preset: str) -> str:
    """Return a whole config as TOML, with the values of a preset ("": the defaults, all commented out).

    Raises UserError, which lists the presets, when there is none of this name.
    """
    config = load_config(Path(preset) if preset else None)
    named = f"the preset {preset}" if preset else "the defaults"
    lines = [
        f"# A run of redqueen with the values of {named}: start it with `redqueen train FILE`.",
        *_comment(
            "A field after a # is not set: it has the value that is shown, or one that is fitted to the base "
            "(`redqueen train FILE --dry-run` prints the values). Remove the # to set it."
        ),
    ]
    for section, field in Config.model_fields.items():
        values = getattr(config, section)
        lines += ["", *_comment((field.annotation.__doc__ or "").split("\n\n")[0]), f"[{section}]"]
        for name, about in type(values).model_fields.items():
            line = f"{name} = {as_toml(values.model_dump(mode='json')[name])}"
            lines += ["", *_comment(about.description or ""), line if name in values.model_fields_set else f"#{line}"]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    plain = " ".join(text.replace("``", "`").split())
    return textwrap.wrap(plain, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
