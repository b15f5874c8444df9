"""Access control of the dashboard: it serves only read requests from this machine's own pages.

A web page from another site can make a browser call loopback addresses, also through its own domain name that resolves
to them (DNS rebinding). So the Host must be a loopback name, an Origin must be this server's, and nothing is written.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
VERBS = ("GET", "HEAD")

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware that refuses requests by :func:`refusal` and adds the security headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refused = refusal(scope["method"], Headers(scope=scope))
        if refused is None:
            await self.app(scope, receive, send_guarded)
        else:
            status, reason = refused
            allow = {"Allow": ", ".join(VERBS)} if status == 405 else None
            await PlainTextResponse(reason + "\n", status, allow)(scope, receive, send_guarded)


def refusal(method: str, headers: Headers) -> tuple[int, str] | None:
    """Return the status code and the reason why a request is refused, or None when it may pass."""
    if method not in VERBS:
        return 405, "The dashboard is read-only: use GET."
    hosts = headers.getlist("host")
    if len(hosts) != 1 or _host_name(hosts[0]) not in LOOPBACK_NAMES:
        return 403, "The Host is not this machine's loopback address: open the address that the command printed."
    origins = headers.getlist("origin")
    if origins and origins != [f"http://{hosts[0]}"]:
        return 403, "The request comes from another origin."
    elsewhere = headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if elsewhere and headers.get("sec-fetch-mode") != "navigate":
        return 403, "The request comes from a page of another site."
    return None


def _host_name(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises ValueError when it is not a valid port
    except ValueError:
        return None
    return None if parts.username is not None or parts.path or parts.query or parts.fragment else parts.hostname
