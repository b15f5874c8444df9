"""Bases in GGUF files: their weights are unpacked once into a model folder in a cache, which everything else reads.

GGUF files hold weights of a few bits each. Training and sampling here need plain matrices, so a file is dequantised to
bfloat16; what its quantisation lost stays lost. Reading such files is transformers' work, with the package gguf.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redqueen.errors import UserError, how_to_install
from redqueen.files import making_folder

SUFFIX = ".gguf"
CACHE_VARIABLE = "REDQUEEN_CACHE"


def gguf_file(name: str) -> Path | None:
    """Return the GGUF file that ``model.base`` means: the file itself, or the only one in a folder without config.json.

    None for any other base. Raises UserError when a folder has several.
    """
    path = Path(name)
    if path.suffix.lower() == SUFFIX and path.is_file():
        return path
    if not path.is_dir() or (path / "config.json").is_file():
        return None
    found = sorted(path.glob(f"*{SUFFIX}"))
    if len(found) > 1:
        raise UserError(f"model.base {name} has {len(found)} GGUF files: name one of them, such as {found[0]}")
    return found[0] if found else None


def cache_folder(file: Path) -> Path:
    """Return where the model unpacked from ``file`` lies: below $REDQUEEN_CACHE, or the user's cache folder.

    The name holds a digest of the whole file: another one of the same shape may differ in a module in its middle.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(os.environ.get(CACHE_VARIABLE) or home / "redqueen")
    at = file.stat()
    return folder / "bases" / f"{file.stem}-{_digest(file.resolve(), at.st_size, at.st_mtime_ns)[:12]}"


@cache
def _digest(file: Path, _size: int, _changed_ns: int) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unpacked(file: Path) -> Path:
    """Return the folder of the model unpacked from ``file``, unpacking it when that was not done before."""
    folder = cache_folder(file)
    if not (folder / "config.json").is_file():
        unpack(file, folder)
    return folder


def shape_of(file: Path) -> dict[str, Any]:
    """Return what the config.json of the model in ``file`` says, read from its header. Raises as ``unpack`` does."""
    with _reading(file):
        from transformers import AutoConfig

        shape: dict[str, Any] = AutoConfig.from_pretrained(
            str(file.parent), gguf_file=file.name, trust_remote_code=False
        ).to_dict()
    return shape


def unpack(file: Path, folder: Path) -> None:
    """Write the model in ``file``, dequantised to bfloat16, and its tokenizer into the new ``folder``.

    Raises UserError when the package gguf is not installed, or the file cannot be read or the folder not be written.
    """
    with _reading(file):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # it would overwrite our progress display
        parent, name = str(file.parent), file.name
        tokenizer = AutoTokenizer.from_pretrained(parent, gguf_file=name, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            parent,
            gguf_file=name,
            trust_remote_code=False,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.bfloat16,
        )
    try:
        with making_folder(folder) as aside:
            model.save_pretrained(aside)
            tokenizer.save_pretrained(aside)
    except OSError as error:
        if (folder / "config.json").is_file():
            return  # another process has just made it
        raise UserError(
            f"{folder} cannot be written ({error.strerror or error}): set {CACHE_VARIABLE} to a folder with free space"
        ) from None


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    if find_spec("gguf") is None:
        raise UserError(f"{file} is a GGUF file; the package that reads it is missing: {how_to_install('gguf')}")
    try:
        yield
    except Exception as error:  # the tokenizers package raises nothing narrower
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{file} cannot be read as a GGUF model ({first}): give a model folder or a hub name") from None


def how_read(name: str) -> str:
    """Return what the plan says about a base in a GGUF file, "" for any other base."""
    file = gguf_file(name)
    if file is None:
        return ""
    folder = cache_folder(file)
    state = "was unpacked" if (folder / "config.json").is_file() else "will be unpacked once"
    return f"{file} holds quantised weights; it {state} (dequantised to bfloat16) into {folder}"
