"""Where members rest: numbers in a file that stands in the address space, and of which memory holds what is in use.

The system reads a page of it when it is touched and takes it back when memory is wanted elsewhere, so what a member is
comes back bit by bit, and no code of ours decides what to keep. The file has no name: however the process ends, its
space is free again, and a resumed run fills a new one from its checkpoint. Its space is claimed when it is made, since
a disk that is full later would kill the process at a write to memory. Ground: ours.
"""

from __future__ import annotations

import math
import mmap
import os
import shutil
from tempfile import TemporaryFile

import numpy as np
import torch

from redqueen.display import size
from redqueen.errors import UserError


class RestingFile:
    """Numbers (fp32, on the CPU, first 0) of ``shape`` in a file in ``folder``.

    Raises UserError when the folder cannot be written or its disk has too little space.
    """

    def __init__(self, folder: str, shape: tuple[int, ...]) -> None:
        num_bytes = math.prod(shape) * torch.float32.itemsize
        try:
            with TemporaryFile(dir=folder) as file:
                os.posix_fallocate(file.fileno(), 0, num_bytes)
                self._mapped = mmap.mmap(file.fileno(), num_bytes)
        except OSError as error:
            raise UserError(
                f"population.resting_folder: {folder} cannot hold {size(num_bytes)} for members at rest "
                f"({error.strerror}): name a folder that is there, can be written and has the space"
            ) from None
        self.numbers = torch.from_numpy(np.frombuffer(self._mapped, np.float32).reshape(shape))

    def let_go(self) -> None:
        """Count nothing of the file as this process's memory until it is touched again; what was written stays."""
        self._mapped.madvise(mmap.MADV_DONTNEED)


def free_bytes(folder: str) -> int:
    """Return the space that is free for a file in ``folder``. Raises UserError when it is not there."""
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        raise UserError(
            f"population.resting_folder: {folder} cannot hold members at rest ({error.strerror}): name a folder that "
            "is there"
        ) from None
