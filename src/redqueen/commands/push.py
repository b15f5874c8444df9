"""``redqueen push``: send an exported member to the Hugging Face hub, through ``huggingface_hub``."""

from __future__ import annotations

import itertools
import json
import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from huggingface_hub import CommitOperationAdd, HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError
from huggingface_hub.utils import validate_repo_id

from redqueen.display import visible
from redqueen.errors import UserError
from redqueen.files import open_plain
from redqueen.policy.base_shape import OWN_BASE

CONFIGS = ("adapter_config.json", "config.json")
"""One of them, with weights beside it, makes a folder an exported adapter or model."""

KNOWN = re.compile(
    r"README\.md|LICENSE(\.txt|\.md)?|NOTICE|adapter_config\.json|adapter_model\.safetensors|breeding\.json"
    r"|config\.json|generation_config\.json|model(-[0-9]{5}-of-[0-9]{5})?\.safetensors|model\.safetensors\.index\.json"
    r"|tokenizer\.json|tokenizer_config\.json|tokenizer\.model|special_tokens_map\.json|added_tokens\.json|vocab\.json"
    r"|vocab\.txt|merges\.txt|spiece\.model|chat_template\.(jinja|json)|preprocessor_config\.json"
)
"""The files of an adapter or a model: what an export writes."""

MAX_BYTES = 256 << 30
MAX_ENTRIES = 10_000
"""Entries of a folder that are looked at."""

MESSAGE = "Upload with redqueen"

CLIENT_ERROR = cast(type[Exception], next(one for one in HfHubHTTPError.__mro__ if one.__name__ == "HTTPError"))
"""What the hub's HTTP client raises, without an answer too; which client it is differs between the hub's versions."""


def push(folder: Path, repo: str, private: bool, dry_run: bool, as_json: bool) -> None:
    """Send a folder (or with ``dry_run`` list what would be sent) and print what was sent where."""
    sent = push_folder(folder, repo, private, dry_run)
    left = [f"not sent: {visible(name, one_line=True)}" for name in sent["left_out"]]
    print(json.dumps(sent) if as_json else "\n".join([*sent["files"], *left, sent["url"] or "nothing was sent"]))


def push_folder(folder: Path, repo: str, private: bool, dry_run: bool) -> dict[str, Any]:
    """Upload the exported member in ``folder`` to the model repository ``repo``, made if need be.

    Only plain files that an export or the hub's own tools write are sent, each under its exact name; a link is never
    followed. Returns ``files`` (the names that are sent, sorted), ``left_out`` (the others) and ``url`` of the commit
    (None with ``dry_run``, which sends nothing). Raises UserError for a folder that holds no exported member, a bad
    name, a refusal or an unreachable hub.
    """
    files, left_out = _files_of(folder)
    try:
        validate_repo_id(repo)
    except HFValidationError:
        raise UserError(f"--repo {repo!r} is no repository's name: write it as owner/name") from None
    if repo.count("/") != 1:
        raise UserError(f"--repo {repo} lacks its owner: write it as owner/name")
    if dry_run:
        return {"files": files, "left_out": left_out, "url": None}
    api = HfApi(library_name="redqueen")
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        with ExitStack() as stack:
            sent = [
                CommitOperationAdd(name, stack.enter_context(open_plain(folder / name, MAX_BYTES))) for name in files
            ]
            commit = api.create_commit(repo_id=repo, operations=sent, commit_message=MESSAGE)
    except LocalTokenNotFoundError:
        raise UserError("the hub wants to know who you are: run `hf auth login`, or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no answer"
        remedy = "check your token and that it may write there" if status in (401, 403) else "try again later"
        raise UserError(f"the hub refused {repo} ({status}): {remedy}") from None
    except (OSError, CLIENT_ERROR) as error:
        raise UserError(f"{repo} could not be sent ({error}): check the connection and try again") from None
    return {"files": files, "left_out": left_out, "url": str(commit.commit_url)}


def _files_of(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of what is sent, and of what lies there beside it and is not."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: make one with `redqueen export`")
    sent, left_out = [], []
    for inside in ("", OWN_BASE):
        place = folder / inside
        if inside and (place.is_symlink() or not place.is_dir()):
            continue
        with os.scandir(place) as entries:
            for entry in itertools.islice(entries, MAX_ENTRIES):
                name = f"{inside}/{entry.name}" if inside else entry.name
                if entry.is_file(follow_symlinks=False) and KNOWN.fullmatch(entry.name):
                    sent.append(name)
                elif name != OWN_BASE or entry.is_symlink():
                    left_out.append(name)
    if not any(name in sent for name in CONFIGS) or not any(re.fullmatch(r"[^/]*\.safetensors", name) for name in sent):
        raise UserError(f"{folder} holds no exported member (an adapter or a model): make one with `redqueen export`")
    return sorted(sent), sorted(left_out)
