"""What a user's config names by where it stands, ``module:NAME``: their own code, imported into this process.

Whoever calls this has asked before whether the config may be trusted: importing runs code.
"""

from __future__ import annotations

import importlib
import os
import sys


def import_named(place: str) -> object:
    """Import ``module:NAME`` and return what stands under the name; the module may be a file in the current folder.

    The console script has its own folder on ``sys.path`` where ``python -m`` has the current one, so the current folder
    is added, last: what is installed comes before it, and the sandbox finds a domain's own functions there as well.
    Raises whatever the import raises.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    module, _, name = place.partition(":")
    found: object = getattr(importlib.import_module(module), name)
    return found
