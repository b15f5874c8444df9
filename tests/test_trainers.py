"""The page on rewards for other trainers, run as it stands: TRL's GRPOTrainer and episodes of ``verifiers``.

Each needs an interpreter that has the package beside redqueen's own dependencies: this one, or the one that
REDQUEEN_TRL_PYTHON or REDQUEEN_VERIFIERS_PYTHON names (``python -m venv``, then ``pip install trl``).
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from task_run import write_task_run

import redqueen
from redqueen.adapters.base_shape import embedded_folder
from redqueen.commands.task_rows import write_environment
from redqueen.report.task_list import TaskFilter

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "rewards.md"
pytestmark = [pytest.mark.slow, pytest.mark.trainers]


def block(holding: str) -> str:
    """The one block of Python on the page that holds this text."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = [code for code in blocks if holding in code]
    assert len(found) == 1
    return found[0]


def interpreter(package: str) -> str:
    named = os.environ.get(f"REDQUEEN_{package.upper()}_PYTHON")
    if not named and find_spec(package) is None:
        pytest.skip(f"{package} is not here, and REDQUEEN_{package.upper()}_PYTHON names no interpreter that has it")
    return named or sys.executable


def run(python: str, script: Path, **env: str) -> str:
    paths = os.pathsep.join([str(script.parent), str(ROOT / "src")])
    settings = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": "", **env}
    done = subprocess.run(
        [python, str(script)], cwd=script.parent, env=settings, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_trl_trains_the_embedded_base_on_the_verifiers_rewards(tmp_path: Path) -> None:
    python = interpreter("trl")
    write_task_run(tmp_path / "runs" / "population-0")
    (tmp_path / "grpo.py").write_text(block("GRPOTrainer("))
    assert re.search(r"^\[-?[\d.]+, -?[\d.]+\]$", run(python, tmp_path / "grpo.py"), re.MULTILINE)


@contextmanager
def serving_the_embedded_base() -> Iterator[str]:
    """A server of chat completions on loopback, which answers greedily; yields its address."""
    base = redqueen.load_member(embedded_folder())
    one_at_a_time = threading.Lock()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = base.tokenizer(body["messages"][-1]["content"], add_special_tokens=False, return_tensors="pt")
            with one_at_a_time, torch.no_grad():
                tokens = base.model.generate(**asked, do_sample=False, max_new_tokens=48)[0]
            text = base.tokenizer.decode(tokens[asked["input_ids"].shape[1] :]).replace(base.tokenizer.eos_token, "")
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "base", "choices": [choice]}
            answer["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def test_verifiers_runs_episodes_that_the_verifier_grades(tmp_path: Path) -> None:
    python = interpreter("verifiers")
    run_dir = write_task_run(tmp_path / "runs" / "population-0")
    write_environment(run_dir, TaskFilter(kind="code_o"), "compact", tmp_path / "built" / "redqueen-tasks")
    (tmp_path / "built" / "redqueen-tasks" / "redqueen_tasks").rename(tmp_path / "redqueen_tasks")
    (tmp_path / "episodes.py").write_text(block("asyncio.run(run_episodes())"))
    with serving_the_embedded_base() as address:
        printed = run(python, tmp_path / "episodes.py", ENDPOINT=address, API_KEY="none")
    rewards = [float(line.split()[0]) for line in printed.splitlines() if re.match(r"-?[\d.]+ ", line)]
    assert rewards and set(rewards) <= {1.0, -0.5, -1.0}
