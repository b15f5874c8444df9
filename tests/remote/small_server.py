"""A small server of completions with adapters, in a process of its own: the routes of vLLM, and its silent faults.

It shares nothing with the bank: each adapter is merged into a copy of the base's weights, and the model is the
library's own. ``POST /fault`` with ``{"name": ..., "times": n}`` switches a fault on for the next n times (-1: for
good).
"""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

FAULTS = ("base", "wrong", "missing", "stale", "raw", "narrow", "load", "hang", "strange")
FAULTS += ("decode", "displace")


class Merged(dict[str, torch.Tensor]):
    """Weights with an adapter merged in, by name of the parameter; ``digest`` stands for all of them."""

    digest = b""


class Engine:
    def __init__(self, folder: str) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = Path(folder) / "tokenizer.json"
        self.tokenizer = AutoTokenizer.from_pretrained(folder) if tokenizer.exists() else None
        self.weights = dict(self.model.named_parameters())
        self.adapters: dict[str, Merged] = {}
        self.faults: dict[str, int] = {}
        self.cache: dict[tuple[str, tuple[int, ...]], torch.Tensor] = {}
        self.known: dict[tuple[bytes, bytes, int], torch.Tensor] = {}
        """Logits by what was merged, tokens and length: most tests ask for the same ones."""
        self.lock = threading.Lock()
        self.num_loads = 0

    def faulty(self, name: str) -> bool:
        left = self.faults.get(name, 0)
        self.faults[name] = max(left - 1, 0) if left > 0 else left
        return left != 0

    def load(self, name: str, folder: Path) -> None:
        """Merge W + alpha / r B A of every module, or, with a fault, of all but one sort."""
        settings = json.loads((folder / "adapter_config.json").read_text())
        factors = load_file(folder / "adapter_model.safetensors")
        scale = settings["lora_alpha"] / settings["r"]
        skipped = "down_proj" if self.faulty("missing") else "nothing"
        merged, digest = Merged(), hashlib.sha256()
        for key, a in factors.items():
            if key.endswith(".lora_A.weight") and skipped not in key:
                module = key.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                b = factors[key.replace("lora_A", "lora_B")]
                merged[f"{module}.weight"] = self.weights[f"{module}.weight"] + scale * (b @ a)
                digest.update(module.encode() + merged[f"{module}.weight"].numpy().tobytes())
        merged.digest = digest.digest()
        if self.adapters and self.faulty("displace"):
            self.adapters[next(iter(self.adapters))] = merged
        self.adapters[name] = merged
        self.num_loads += 1

    def logits(self, name: str, tokens: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocabulary) behind ``tokens`` (rows, length)."""
        if self.faulty("base"):
            merged = Merged()
        elif self.faulty("wrong"):
            merged = self.adapters[next(other for other in [*self.adapters, name] if other != name)]
        else:
            merged = self.adapters[name]
        key = merged.digest, tokens.numpy().tobytes(), tokens.shape[1]
        if key not in self.known:
            out = torch.func.functional_call(self.model, merged, (tokens,), {"use_cache": False})
            self.known[key] = out.logits[:, -1]
        return self.known[key]

    def complete(self, body: dict) -> dict:
        """Draw the samples of one request token by token, all of its rows together."""
        name, n, prompt = body["model"], body["n"], body["prompt"]
        generator = torch.Generator().manual_seed(body["seed"])
        rows = torch.tensor([prompt] * n)
        drawn = [{"token_ids": [], "values": [], "top": [], "reason": None} for _ in range(n)]
        for _ in range(body["max_tokens"]):
            if rows.shape[1] == len(prompt):
                logits = self.cached(name, rows)
            elif self.faulty("decode"):
                logits = self.model(rows, use_cache=False).logits[:, -1]
            else:
                logits = self.logits(name, rows)
            heat = body["temperature"] or 1.0
            if self.faulty("narrow"):  # as a top_k of the model's generation config would
                logits = logits.masked_fill(logits < logits.topk(5).values[:, -1:], -1e9)
            logp = torch.log_softmax(logits / heat, dim=-1)
            noise = torch.rand(n, generator=generator)
            tokens = logits.argmax(-1) if not body["temperature"] else pick(logp.exp(), noise)
            shown = torch.log_softmax(logits, dim=-1) if self.faulty("raw") else logp
            rows = torch.cat([rows, tokens[:, None]], dim=1)
            for row, one in enumerate(drawn):
                if one["reason"] is None:
                    self.extend(one, int(tokens[row]), shown[row], body)
            if all(one["reason"] for one in drawn):
                break
        return {"choices": [choice(i, one) for i, one in enumerate(drawn)]}

    def cached(self, name: str, rows: torch.Tensor) -> torch.Tensor:
        """The logits behind the prompt; with a fault, those that an earlier version of this adapter left behind."""
        key = name.rpartition("-")[0], tuple(rows[0].tolist())
        if self.faulty("stale") and key in self.cache:
            return self.cache[key].expand(len(rows), -1)
        self.cache[key] = self.logits(name, rows[:1])
        return self.cache[key].expand(len(rows), -1)

    def extend(self, one: dict, token: int, logp: torch.Tensor, body: dict) -> None:
        one["token_ids"].append(token)
        one["values"].append(max(float(logp[token]), -9999.0))
        best = logp.topk(max(1, body["logprobs"]))
        shown = {f"token_id:{token}": one["values"][-1]}
        for value, other in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            if body["logprobs"]:
                shown[f"token_id:{other}"] = max(value, -9999.0)
        one["top"].append(shown)
        text = self.tokenizer.decode(one["token_ids"]) if body.get("stop") else ""
        if token in body.get("stop_token_ids", ()) or any(stop in text for stop in body.get("stop", ())):
            one["reason"] = "stop"
        elif len(one["token_ids"]) == body["max_tokens"]:
            one["reason"] = "length"


def pick(probs: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    cumulative = probs.cumsum(dim=-1)
    return torch.searchsorted(cumulative, noise[:, None] * cumulative[:, -1:]).clamp(max=probs.shape[-1] - 1)[:, 0]


def choice(index: int, one: dict) -> dict:
    logprobs = {"token_logprobs": one["values"], "top_logprobs": one["top"]}
    return {"index": index, "token_ids": one["token_ids"], "logprobs": logprobs, "finish_reason": one["reason"]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the other side to confirm the headers
    engine: Engine

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        engine = self.engine
        cards = [{"id": "base"}, *({"id": name} for name in engine.adapters)]
        self.answer(200, {"data": cards, "num_loads": engine.num_loads})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        engine = self.engine
        with engine.lock, torch.inference_mode():
            if self.path == "/fault":
                assert body["name"] in FAULTS
                engine.faults[body["name"]] = body["times"]
                self.answer(200, {})
            elif self.path == "/v1/load_lora_adapter":
                if engine.faulty("load"):
                    return self.answer(500, {"error": {"message": "no room for this adapter"}})
                if body["lora_name"] in engine.adapters:
                    return self.answer(400, {"error": {"message": "has already been loaded"}})
                engine.load(body["lora_name"], Path(body["lora_path"]))
                self.answer(200, {})
            elif self.path == "/v1/unload_lora_adapter":
                found = engine.adapters.pop(body["lora_name"], None)
                self.answer(404 if found is None else 200, {})
            elif body["model"] not in engine.adapters:
                self.answer(404, {"error": {"message": "The model does not exist."}})
            elif engine.faulty("strange"):
                self.answer(200, {"choices": [{"index": i, "text": "hello"} for i in range(body["n"])]})
            elif engine.faulty("hang"):
                self.close_connection = True
                threading.Event().wait(2.5)
            else:
                self.answer(200, engine.complete(body))


def serve(folder: Path, port: int, told: Connection) -> None:
    """Serve the model until the process ends; send the port once it listens."""
    torch.set_num_threads(1)
    Handler.engine = Engine(str(folder))
    ThreadingHTTPServer.request_queue_size = 256  # more than a sampler asks at once: others the kernel would reset
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    told.send(server.server_port)
    server.serve_forever()
