"""The frozen suites never change: older figures were measured on these very lines."""

import gzip
import hashlib
import shutil
from pathlib import Path

import pytest

from redqueen import domains
from redqueen.domains.rows import frozen_files
from redqueen.errors import UserError

FOLDERS = sorted(Path(domains.__path__[0]).glob("*/suites"))
DIGESTS = {
    "everyday.jsonl": "0b25651e69a59fda87d070e54f70f938491f18724b2a6d953e68aa14e6bec204",
    "generated.jsonl": "5fccb2b784e52d9da526858dff3d0571ddacfaf56d30501db8d7b2b95f589a23",
    "puzzles.jsonl": "9b95a72101de8c50bdd45c13cf9ff42eee48691d24c667a6501e9ccea7d2db90",
    "exercises.jsonl": "4c6578e9d186ba9adde4768d27d63950668de091fffff78580dd2331f96cfb75",
}
"""SHA-256 of each suite's lines, unpacked."""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_the_lines_of_a_suite_are_those_that_were_frozen(folder: Path) -> None:
    assert {*frozen_files(folder), folder / "CHECKSUMS"} == {*folder.iterdir()}
    for path in frozen_files(folder):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert hashlib.sha256(data).hexdigest() == DIGESTS[path.name.removesuffix(".gz")]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_damaged_suite_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "suites")
    path = frozen_files(copy)[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match="has changed since it was frozen"):
        frozen_files(copy)
