"""One decoding step recorded as a CUDA graph, so that a GPU decodes without waiting for Python to launch its kernels.

Recording does not run the step. The step must only read and write tensors that keep their storage; when rows are added
or removed or their caches grow, the step is recorded again.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


class StepGraph:
    """A recording of ``step``. Some step must have run in the process, so that libraries have set themselves up."""

    def __init__(self, step: Callable[[], None]) -> None:
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            step()

    def run(self) -> None:
        """Run the step as recorded."""
        self._graph.replay()
