"""Serves the dashboard on loopback until it is stopped."""

from __future__ import annotations

import socket
from pathlib import Path

from redqueen.errors import UserError, how_to_install

HOST = "127.0.0.1"


def serve(root: Path, port: int) -> None:
    """Serve the runs in ``root`` on 127.0.0.1 at ``port`` (0: any free port) until Ctrl-C.

    Raises UserError when the extra is not installed, ``root`` is not a folder, or the port is taken.
    """
    try:
        import uvicorn

        from redqueen.report.site import create_app
    except ModuleNotFoundError as error:
        raise UserError(
            f"The dashboard needs {error.name}, which is not installed; run: {how_to_install('dashboard')}"
        ) from error
    if not root.is_dir():
        raise UserError(f"{root} is not a folder; give the folder that contains your run directories.")
    with _listen(port) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        print(f"dashboard of {root}: {address} (Ctrl-C ends it)", flush=True)
        settings = uvicorn.Config(
            create_app(root), log_level="warning", access_log=False, server_header=False, ws="none", workers=1
        )
        uvicorn.Server(settings).run(sockets=[listener])


def _listen(port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port} is not a port; choose one from 1024 to 65535, or 0 for any that is free.")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UserError(f"--port {port} cannot be used ({error.strerror}); choose another one, or 0.") from error
    return listener
