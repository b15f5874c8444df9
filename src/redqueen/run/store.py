"""A run directory: its files by name, its config, and the lock that lets one process write at a time."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from contextlib import AbstractContextManager
from pathlib import Path

from redqueen.config import Config, parse_recorded
from redqueen.display import counted
from redqueen.errors import UserError, command
from redqueen.files import making_folder, naming_remedy, read_plain, write_whole
from redqueen.journal import Journal, read
from redqueen.journal.untrusted import SIDE_FILES
from redqueen.locking import LOCK_NAME, held_here
from redqueen.run.status import STATUS

CONFIG = "config.json"
JOURNAL = "journal.sqlite"
CHECKPOINTS = "checkpoints"
LOCK = LOCK_NAME
EVALUATIONS = "evaluations"
REPORT = "report.html"
"""Written last: an experiment's run that has it and its last step is finished."""
PAGE_BYTES = 4096
"""Size of a journal to which nothing has been committed."""


def load_run_config(folder: Path, to_resume: bool = False) -> Config:
    """Read the config of a run directory with ``parse_recorded``. Raises UserError if it is not a run directory."""
    path = folder / CONFIG
    try:
        if not os.path.isdir(folder):
            raise FileNotFoundError
        return parse_recorded(json.loads(read_plain(path)), str(path), to_resume)
    except FileNotFoundError:
        raise UserError(
            f"{folder} is not a run directory (it has no {CONFIG}): give the folder that `redqueen train` made"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is damaged ({error}): restore it from a copy") from None


def trusted_config(config: Config, folder: Path, trust_hooks: bool, allow_weak: bool) -> Config:
    """Return a run folder's config; ``verify.allow_weak`` stays on only if the user gave ``allow_weak``.

    Raises UserError when it names a hook or a domain to import and ``trust_hooks`` is false: importing runs code.
    """
    hooks = [config.propose.policy_hook, *config.propose.domains_to_import, *config.evolve.imported]
    if (hook := next(filter(None, hooks), "")) and not trust_hooks:
        raise UserError(
            f"{folder / CONFIG} names the hook {hook!r}, whose import runs code: if you trust it, continue with "
            f"`{command('resume', folder, '--trust-hooks')}`"
        )
    weak = config.verify.allow_weak and allow_weak
    return config.model_copy(update={"verify": config.verify.model_copy(update={"allow_weak": weak})})


def refuse_links(folder: Path) -> None:
    """Raise UserError when a file or folder that a run writes to, or deletes from, is a link."""
    for name in (CHECKPOINTS, "tensorboard", "wandb", LOCK, CONFIG, REPORT, STATUS):
        if os.path.islink(folder / name):
            raise UserError(
                f"{folder / name} is a link, and a run writes there: put the file or folder itself into {folder}"
            )


def refuse_existing(folder: Path) -> None:
    """Raise UserError when the folder of a new run exists already."""
    if folder.exists():
        raise UserError(
            f"{folder} exists already: choose another --run-dir, or continue it: `{command('resume', folder)}`"
        )


def make_run_folder(folder: Path, config: Config) -> None:
    """Make the run directory with its config, both or neither."""
    remedy = "choose a folder you may write to"
    with naming_remedy(f"--run-dir {folder} cannot be made", remedy), making_folder(folder) as temporary:
        write_whole(temporary / CONFIG, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")


def remove_journal(folder: Path) -> None:
    """Remove the journal of a run without a checkpoint, and first its side files, which a new journal must not inherit.

    Raises UserError when it has a finished step: its run had a checkpoint, which was removed.
    """
    path = folder / JOURNAL
    if (last := _last_step(path)) > 0:
        raise UserError(
            f"{folder} has no checkpoint, but its journal has {counted(last, 'step')}, so it cannot be resumed: "
            f"restore the folder {CHECKPOINTS} from a copy, or start a new run; `redqueen report` still reads this one"
        )
    with naming_remedy(f"{path} cannot be removed", "make the run directory writable"):
        for name in (*(f"{JOURNAL}{ending}" for ending in SIDE_FILES), JOURNAL):
            path.with_name(name).unlink(missing_ok=True)


def _last_step(path: Path) -> int:
    """Return the last step in a journal; 0 if there is no journal, or nothing was written to it yet."""
    if not path.exists():
        return 0
    try:
        with Journal.open(path) as journal:
            return read.last_step(journal) or 0
    except UserError:
        if path.stat().st_size <= PAGE_BYTES:
            return 0
        raise


def refuse_own_file(out: Path) -> None:
    """Raise UserError when ``out`` is a file of a run itself, which a report or a table must not overwrite."""
    path = out.resolve()
    own = {CONFIG, JOURNAL, *(f"{JOURNAL}{ending}" for ending in SIDE_FILES), LOCK, STATUS}
    is_own = path.name in own and any((path.parent / name).is_file() for name in (JOURNAL, CONFIG))
    if is_own or any(folder.name == CHECKPOINTS and (folder.parent / JOURNAL).is_file() for folder in path.parents):
        raise UserError(f"--out {out} is a file of the run itself: name another file")


class RunLock:
    """Exclusive write access to a run directory: ``with RunLock(run_dir): ...``.

    A POSIX record lock on the file ``lock``: the system releases it however the process ends, and (unlike ``flock``)
    forked worker processes do not hold it. The file itself stays, with the process id of the last writer. Raises
    UserError when another process holds the lock, when the folder cannot be written to, and when ``lock`` is not a
    regular file of this folder: its content is replaced, so a link would overwrite another file.
    """

    def __init__(self, run_dir: Path):
        self.path = Path(run_dir).resolve() / LOCK
        self._descriptor = -1

    def __enter__(self) -> RunLock:
        if self.path in held_here:
            raise UserError(f"{self.path.parent} is being written by this process; finish that run first.")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with _naming_the_folder(self.path.parent):
            self._descriptor = os.open(self.path, flags, 0o644)
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            os.close(self._descriptor)
            raise UserError(f"{self.path} is not a regular file of this folder; remove it, then resume the run.")
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._descriptor, 32).decode("ascii", "replace").strip()
            os.close(self._descriptor)
            raise UserError(
                f"{self.path.parent} is being written by another process (pid {holder or 'unknown'}); "
                "wait until that run has ended, or stop it first."
            ) from error
        with _naming_the_folder(self.path.parent):
            try:
                os.ftruncate(self._descriptor, 0)
                os.write(self._descriptor, f"{os.getpid()}\n".encode("ascii"))
            except OSError:
                os.close(self._descriptor)
                raise
        held_here.add(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        held_here.discard(self.path)
        os.close(self._descriptor)


def _naming_the_folder(run_dir: Path) -> AbstractContextManager[None]:
    remedy = "make it writable on a disk with free space, then resume the run"
    return naming_remedy(f"the run directory {run_dir} cannot be written to", remedy)
