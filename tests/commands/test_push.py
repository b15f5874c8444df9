"""Sending an exported folder to a hub: a small server on this machine that speaks the hub's protocol."""

import base64
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from redqueen.commands import push
from redqueen.commands.push import push_folder
from redqueen.errors import UserError


@dataclass
class Hub:
    """What the server was sent; ``status`` other than 200 refuses everything."""

    url: str = ""
    status: int = 200
    created: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)

    def answer(self, path: str, body: bytes) -> dict[str, Any]:
        if path.endswith("/repos/create"):
            self.created.append(json.loads(body))
            return {"url": f"{self.url}/me/member", "name": "me/member"}
        if "/preupload/" in path:
            wanted = json.loads(body)["files"]
            return {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in wanted]}
        if "/commit/" in path:
            for line in filter(None, body.split(b"\n")):
                entry = json.loads(line)
                if entry["key"] == "file":
                    self.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            return {"commitUrl": f"{self.url}/me/member/commit/1", "commitOid": "1", "success": True}
        return {"id": "me/member", "sha": "0", "siblings": []}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    served = Hub()

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = served.answer(self.path, body) if served.status == 200 else {"error": "refused"}
            content = json.dumps(answer).encode()
            self.send_response(served.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = reply

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    api = huggingface_hub.HfApi
    monkeypatch.setattr(push, "HfApi", lambda **known: api(endpoint=served.url, token="hf_of_a_test", **known))
    yield served
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "member"
    (made / "base").mkdir(parents=True)
    (made / "adapter_config.json").write_text("{}")
    (made / "adapter_model.safetensors").write_bytes(bytes(range(256)))
    (made / "README.md").write_text("# card")
    (made / "base" / "config.json").write_text("{}")
    return made


NAMES = ["README.md", "adapter_config.json", "adapter_model.safetensors", "base/config.json"]


def test_every_file_arrives_as_it_is_and_the_commit_is_named(hub: Hub, folder: Path) -> None:
    sent = push_folder(folder, "me/member", private=True, dry_run=False)
    assert sent == {"files": NAMES, "left_out": [], "url": f"{hub.url}/me/member/commit/1"}
    assert hub.files == {name: (folder / name).read_bytes() for name in NAMES}
    assert len(hub.created) == 1 and hub.created[0]["name"] == "member"
    assert hub.created[0].get("private") is True or hub.created[0].get("visibility") == "private"


def test_a_dry_run_lists_the_files_and_sends_nothing(hub: Hub, folder: Path) -> None:
    assert push_folder(folder, "me/member", private=False, dry_run=True) == {
        "files": NAMES,
        "left_out": [],
        "url": None,
    }
    assert (hub.created, hub.files) == ([], {})


@pytest.mark.parametrize(("status", "remedy"), [(401, "check your token"), (403, "check your token")])
def test_a_refusal_names_the_remedy(hub: Hub, folder: Path, status: int, remedy: str) -> None:
    hub.status = status
    with pytest.raises(UserError, match=rf"the hub refused me/member \({status}\): {remedy}"):
        push_folder(folder, "me/member", private=False, dry_run=False)


def test_a_hub_that_does_not_answer_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = huggingface_hub.HfApi
    monkeypatch.setattr(
        push, "HfApi", lambda **known: api(endpoint="http://127.0.0.1:9", token="hf_of_a_test", **known)
    )
    with pytest.raises(UserError, match=r"me/member could not be sent .*check the connection"):
        push_folder(folder, "me/member", private=False, dry_run=False)


@pytest.mark.parametrize("repo", ["member", "a/b/c", "me/..", "me/mem ber", ""])
def test_what_is_no_repository_is_refused_before_anything_is_sent(hub: Hub, folder: Path, repo: str) -> None:
    with pytest.raises(UserError, match=r"write it as owner/name"):
        push_folder(folder, repo, private=False, dry_run=False)
    assert hub.created == []


def test_a_folder_without_an_exported_member_is_refused(hub: Hub, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match=r"make one with `redqueen export`"):
            push_folder(place, "me/member", private=False, dry_run=False)


def test_only_known_plain_files_go_out_and_the_others_are_named(hub: Hub, folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "config.json").write_text("secret")
    (folder / "tokenizer.json").symlink_to(secret / "config.json")
    (folder / "*").write_text("a pattern")
    (folder / ".env").write_text("TOKEN=1")
    (folder / "vocab.json").mkdir()
    (folder / "more").symlink_to(secret)
    os.mkfifo(folder / "merges.txt")
    sent = push_folder(folder, "me/member", private=False, dry_run=False)
    assert sent["files"] == NAMES and set(hub.files) == set(NAMES)
    assert sent["left_out"] == ["*", ".env", "merges.txt", "more", "tokenizer.json", "vocab.json"]


def test_a_base_that_is_a_link_is_not_sent(hub: Hub, folder: Path, tmp_path: Path) -> None:
    (folder / "base" / "config.json").unlink()
    (folder / "base").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config.json").write_text("secret")
    (folder / "base").symlink_to(tmp_path / "elsewhere")
    sent = push_folder(folder, "me/member", private=False, dry_run=False)
    assert sent["left_out"] == ["base"] and "base/config.json" not in hub.files
