"""`redqueen dashboard` from the outside: a server process that answers, and what it says when it cannot."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from redqueen.dashboard.serve import serve
from redqueen.errors import UserError

PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def test_the_command_serves_the_runs_on_loopback_until_ctrl_c(runs_dir: Path) -> None:
    # Where the tests themselves run in the background, the interrupt is ignored from birth.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{heard}; from redqueen.cli import main; main()"
    command = [sys.executable, "-c", start, "dashboard", str(runs_dir), "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **PIPES) as server:
        assert server.stdout is not None and server.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=60) as answer:
            assert b"arms/population-0" in answer.read() and "server" not in answer.headers
        foreign = urllib.request.Request(address[0], headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=60)
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert "Traceback" not in server.stderr.read()


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="/nowhere/at/all is no folder"):
        serve(Path("/nowhere/at/all"), 0)


def test_a_port_that_is_taken_or_none_is_named_with_the_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"--port {port} cannot be used .*; choose another one, or 0"):
            serve(tmp_path, port)
    with pytest.raises(UserError, match="--port 99999 is no port"):
        serve(tmp_path, 99999)


def test_without_the_extra_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(UserError, match="The dashboard needs uvicorn, which is not installed; run: pip install"):
        serve(tmp_path, 0)
