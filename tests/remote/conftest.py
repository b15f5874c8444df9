from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from serving import SmallServer, saved_model
from transformers import logging

logging.set_verbosity_error()
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def pair(model: Path) -> Iterator[tuple[SmallServer, SmallServer]]:
    """Two servers of the model, started once; a test switches off the faults that it switches on."""
    servers = SmallServer(model), SmallServer(model)
    yield servers
    for server in servers:
        server.kill()


@pytest.fixture
def server(pair: tuple[SmallServer, SmallServer]) -> SmallServer:
    return pair[0]
