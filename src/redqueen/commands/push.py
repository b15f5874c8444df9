"""``redqueen push``: send an exported member to the Hugging Face hub, through ``huggingface_hub``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError
from huggingface_hub.utils import validate_repo_id

from redqueen.errors import UserError

CONFIGS = ("adapter_config.json", "config.json")
"""One of them, with weights beside it, makes a folder an exported adapter or model."""

MESSAGE = "Upload with redqueen"


def push(folder: Path, repo: str, private: bool, dry_run: bool, as_json: bool) -> None:
    """Send a folder (or with ``dry_run`` list what would be sent) and print what was sent where."""
    sent = push_folder(folder, repo, private, dry_run)
    print(json.dumps(sent) if as_json else "\n".join([*sent["files"], sent["url"] or "nothing was sent"]))


def push_folder(folder: Path, repo: str, private: bool, dry_run: bool) -> dict[str, Any]:
    """Upload all files of ``folder`` to the model repository ``repo``, made if need be.

    Returns ``files`` (their names, sorted) and ``url`` of the commit (None with ``dry_run``, which sends nothing).
    Raises UserError for a folder that holds no exported member, a bad name, a refusal or an unreachable hub.
    """
    files = _files_of(folder)
    try:
        validate_repo_id(repo)
    except HFValidationError:
        raise UserError(f"--repo {repo!r} is no repository's name: write it as owner/name") from None
    if repo.count("/") != 1:
        raise UserError(f"--repo {repo} lacks its owner: write it as owner/name")
    if dry_run:
        return {"files": files, "url": None}
    api = HfApi(library_name="redqueen")
    try:
        api.create_repo(repo, private=private, exist_ok=True)
        commit = api.upload_folder(repo_id=repo, folder_path=folder, commit_message=MESSAGE, allow_patterns=files)
    except LocalTokenNotFoundError:
        raise UserError("the hub wants to know who you are: run `hf auth login`, or set HF_TOKEN") from None
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "no answer"
        remedy = "check your token and that it may write there" if status in (401, 403) else "try again later"
        raise UserError(f"the hub refused {repo} ({status}): {remedy}") from None
    except OSError as error:
        raise UserError(f"{repo} could not be sent ({error}): check the connection and try again") from None
    return {"files": files, "url": str(commit.commit_url)}


def _files_of(folder: Path) -> list[str]:
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: make one with `redqueen export`")
    if not any((folder / name).is_file() for name in CONFIGS) or not any(folder.glob("*.safetensors")):
        raise UserError(f"{folder} holds no exported member (an adapter or a model): make one with `redqueen export`")
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
