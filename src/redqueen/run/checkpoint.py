"""Checkpoints: tensors as safetensors, everything else as JSON, written atomically, checked when read.

A checkpoint is a folder ``step-000120`` with ``tensors.safetensors``, ``state.json`` and ``manifest.json``; the
manifest holds the schema version, the step, and size and SHA-256 of the other two. It is written under a hidden name,
flushed to the disk and then renamed, so a folder with a checkpoint's name is complete unless the disk damaged it later.

With the embedded base, whose weights may change with the package, a checkpoint stores their hash and is refused on
other weights. Other bases are not hashed: reading tens of gigabytes for every checkpoint would cost too much.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from redqueen.adapters.bank import OTHER_ADAPTERS
from redqueen.adapters.base_shape import embedded_folder, weights_sha256
from redqueen.config import EMBEDDED, Config
from redqueen.errors import UserError
from redqueen.files import flush_to_disk, naming_remedy, open_plain, read_plain
from redqueen.learn.torch_learner import FACTORS
from redqueen.state import State, state_from_plain

MILESTONE_STEPS = 100
"""Checkpoints of its multiples are never deleted, so that earlier members can be exported (ours)."""

SCHEMA_VERSION = 2
"""Stored in the manifest; raised by one when the meaning of a checkpoint changes."""

MAX_TENSORS_BYTES, MAX_STATE_BYTES = 256 << 30, 4 << 30
"""Largest sizes of tensor and state files that are read."""

TENSORS, STATE, MANIFEST = "tensors.safetensors", "state.json", "manifest.json"
NAME = re.compile(r"step-(\d{6,})")
TEMPORARY = ".writing-"
"""Prefix of folders that are unfinished or about to be deleted; only a killed process leaves one behind."""
REPLACED = "-replaced"


class DamagedCheckpoint(Exception):
    """This one checkpoint cannot be used; the message says why."""


@dataclass(frozen=True)
class Checkpoint:
    """The data saved after ``step``, from which a run resumes: named tensors (on the CPU) and a plain state.

    The tensors are all members' factors, optimiser moments and step counts. The state is ``redqueen.state.State``
    (members with ratings, task buffer, archive and memory, anchors, hall of fame, latest rewards, baselines, broken
    members, probes, verified answers, step of the last distillation) and the tracker's id. No random state is stored:
    every draw comes from a stream named by seed, step and purpose. A resume truncates the journal to ``step``.

    ``skipped`` has one sentence for each newer checkpoint that was skipped because it is damaged.
    """

    step: int
    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]
    skipped: tuple[str, ...] = ()

    @staticmethod
    def save(
        folder: Path, step: int, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any], num_kept: int = 3
    ) -> Path:
        """Write the checkpoint of ``step`` into ``folder`` and return its path.

        All older ones are deleted except the ``num_kept`` newest and those at multiples of ``MILESTONE_STEPS``.
        ``state`` is plain, as ``state_to_plain`` returns it; floats are restored exactly. Raises UserError when the
        checkpoint cannot be written; earlier checkpoints are then unchanged.
        """
        folder = Path(folder)
        final, temporary = folder / _name(step), folder / f"{TEMPORARY}{step:06d}"
        with _naming_the_folder(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _delete_leftovers(folder)
            temporary.mkdir()
            try:
                _write_files(temporary, step, tensors, state)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            if final.exists():  # it was damaged and its step ran again, or its step was evaluated later
                final.rename(folder / f"{TEMPORARY}{step:06d}{REPLACED}")
            temporary.rename(final)
            flush_to_disk(folder)
            _delete_leftovers(folder)
            for old, path in list_checkpoints(folder)[:-num_kept]:
                if old == 0 or old % MILESTONE_STEPS:
                    _delete(path)
        return final

    @staticmethod
    def load(path: Path) -> Checkpoint:
        """Read one checkpoint folder. Raises DamagedCheckpoint when a file is missing, cut or altered, and UserError
        when another version of redqueen wrote it."""
        manifest = _read_json(path / MANIFEST)
        version = manifest.get("schema_version")
        if not isinstance(version, int):
            raise DamagedCheckpoint(f"{MANIFEST} differs from what was written")
        if version != SCHEMA_VERSION:
            raise UserError(
                f"The checkpoint {path} has schema {version}, and this redqueen reads schema {SCHEMA_VERSION}; "
                "resume with the version of redqueen that wrote it."
            )
        step, fingerprints = manifest.get("step"), manifest.get("files")
        if not isinstance(fingerprints, dict) or not isinstance(step, int) or path.name != _name(step):
            raise DamagedCheckpoint(f"{MANIFEST} differs from what was written")
        for name in (TENSORS, STATE):
            try:
                is_right = _fingerprint(path / name, fingerprints.get(name)) == fingerprints.get(name)
            except FileNotFoundError:
                raise DamagedCheckpoint(f"{name} is missing") from None
            except UserError as error:
                raise DamagedCheckpoint(str(error)) from None
            if not is_right:
                raise DamagedCheckpoint(f"{name} differs from what was written (size or SHA-256 differs)")
        try:
            tensors = load_file(path / TENSORS)
        except SafetensorError as error:
            raise DamagedCheckpoint(f"{TENSORS} is not a file of tensors ({error})") from None
        return Checkpoint(step, tensors, _read_json(path / STATE))

    @staticmethod
    def latest_valid(folder: Path) -> Checkpoint | None:
        """Return the newest checkpoint that can be used, naming in ``skipped`` the damaged ones that are newer.

        Returns None when there is none at all (killed before its first: the run starts over). Raises UserError when
        there are some and every one is damaged, or when the folder is absent or cannot be read.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise UserError(
                f"There is no checkpoint folder {folder}; give the run directory of a run that was started."
            )
        skipped: list[str] = []
        with _naming_the_folder(folder):
            for _, path in reversed(list_checkpoints(folder)):
                try:
                    found = Checkpoint.load(path)
                except DamagedCheckpoint as damage:
                    skipped.append(f"{path} is damaged: {damage}.")
                    continue
                return Checkpoint(found.step, found.tensors, found.state, tuple(skipped))
        if skipped:
            raise UserError(
                f"No checkpoint in {folder} can be used. "
                + " ".join(skipped)
                + " Restore one from a copy, or start a new run."
            )
        return None


def list_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Return the checkpoints in ``folder`` as (step, path), oldest first, without reading them."""
    named = ((NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    return sorted((int(match[1]), path) for match, path in named if match is not None)


def restore_replaced(folder: Path) -> None:
    """Rename a checkpoint back if a process was killed while it replaced it; ``folder`` need not exist."""
    with _naming_the_folder(folder):
        for path in folder.glob(f"{TEMPORARY}*{REPLACED}"):
            step = path.name.removeprefix(TEMPORARY).removesuffix(REPLACED)
            if step.isdecimal() and not os.path.lexists(folder / _name(int(step))):
                path.rename(folder / _name(int(step)))


def remove_after(folder: Path, step: int) -> None:
    """Delete the checkpoints of later steps (damaged ones skipped on resume); those steps will run again."""
    with _naming_the_folder(folder):
        for at, path in list_checkpoints(folder):
            if at > step:
                _delete(path)


def _name(step: int) -> str:
    return f"step-{step:06d}"


def _write_files(temporary: Path, step: int, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
    # Tensors are written without a copy, which might not fit into memory. Only a second tensor at the same address is
    # copied, since the format refuses tensors that share memory.
    owned: dict[str, torch.Tensor] = {}
    starts: set[int] = set()
    for name, tensor in tensors.items():
        here = tensor.detach().cpu().contiguous()
        owned[name] = here.clone() if here.data_ptr() in starts else here
        starts.add(here.data_ptr())
    save_file(owned, temporary / TENSORS)
    (temporary / TENSORS).chmod(temporary.stat().st_mode & 0o666)  # safetensors makes it readable by its owner only
    (temporary / STATE).write_text(json.dumps(state), encoding="utf-8")
    files = {name: _fingerprint(temporary / name) for name in (TENSORS, STATE)}
    manifest = {"schema_version": SCHEMA_VERSION, "step": step, "files": files}
    (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    for name in (TENSORS, STATE, MANIFEST):
        flush_to_disk(temporary / name)
    flush_to_disk(temporary)


def _fingerprint(path: Path, expected: object = None) -> dict[str, int | str]:
    """Return size and digest; only the size if it differs from the expected one, since a digest is slow."""
    with open_plain(path, MAX_TENSORS_BYTES) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if isinstance(expected, dict) and expected.get("num_bytes") != num_bytes:
            return {"num_bytes": num_bytes}
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"num_bytes": file.tell(), "sha256": digest}


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(read_plain(path, MAX_STATE_BYTES))
    except FileNotFoundError:
        raise DamagedCheckpoint(f"{path.name} is missing") from None
    except UserError as error:
        raise DamagedCheckpoint(str(error)) from None
    except (ValueError, RecursionError):
        raise DamagedCheckpoint(f"{path.name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise DamagedCheckpoint(f"{path.name} is not a JSON object")
    return value


def _delete(path: Path) -> None:
    """Delete a checkpoint: first rename it, so that a half-deleted one can never be read as complete."""
    doomed = path.with_name(f"{TEMPORARY}{path.name}-deleted")
    path.rename(doomed)
    shutil.rmtree(doomed)


def _delete_leftovers(folder: Path) -> None:
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path)


def _naming_the_folder(folder: Path) -> AbstractContextManager[None]:
    """Turn errors about disk and permissions into a UserError that names the folder and the remedy."""
    remedy = (
        "make it a writable folder on a disk with free space, then resume the run; earlier checkpoints are untouched"
    )
    return naming_remedy(f"the checkpoint folder {folder} cannot be used", remedy, (OSError, SafetensorError))


def open_checkpoint(folder: Path, config: Config) -> tuple[Checkpoint, State] | None:
    """Return the newest usable checkpoint in ``folder`` with its state, or None if there is none.

    Raises UserError when it does not belong to the config, to this version of redqueen or to its embedded base.
    """
    checkpoint = Checkpoint.latest_valid(folder)
    if checkpoint is None:
        return None
    refuse_other_base(checkpoint, config.model.base, folder.parent)
    with naming_the_checkpoint(checkpoint, folder):
        state = state_from_plain(checkpoint.state["state"])
        slots = sorted(one.slot for one in state.individuals)
        if slots != [*config.slots.members] or len(checkpoint.tensors[FACTORS]) != config.num_adapters:
            raise UserError(OTHER_ADAPTERS)
        if state.step != checkpoint.step or len(state.by_id()) != len(slots):
            raise LookupError("its members")
        if bool(state.answers.capacity) != config.keeps_answers:
            raise LookupError("answers")
    return checkpoint, state


@contextmanager
def naming_the_checkpoint(checkpoint: Checkpoint, folder: Path) -> Iterator[None]:
    """Turn errors about missing or unexpected content of a checkpoint into a UserError with the remedies."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(
            f"The checkpoint of step {checkpoint.step} in {folder} was written by another version of redqueen, or is "
            f"damaged (missing or unexpected: {error}): resume with the version that wrote it (the table `run` "
            "names it), or restore it from a copy."
        ) from None


BASE = "embedded_base"
"""In a checkpoint's state: the SHA-256 of the embedded base's weights."""


def named_base(base: str) -> dict[str, str]:
    """Return what a checkpoint stores about ``model.base``."""
    return {BASE: weights_sha256(embedded_folder())} if base == EMBEDDED else {}


def refuse_other_base(checkpoint: Checkpoint, base: str, folder: Path) -> None:
    """Raise UserError when the run in ``folder`` was trained on an embedded base that this package does not have."""
    if base == EMBEDDED and checkpoint.state.get(BASE) != weights_sha256(embedded_folder()):
        raise UserError(
            f"{folder} was trained on another embedded base than this version of redqueen has, and its adapters do not "
            "work on this one: use the version that trained it; report and dashboard still read the run"
        )
