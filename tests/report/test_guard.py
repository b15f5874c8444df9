"""Only this machine's own pages may ask, and only to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.testclient import TestClient

from redqueen.report.guard import LOOPBACK_NAMES, refusal


def headers(**values: str) -> Headers:
    return Headers({"host": "127.0.0.1:8470"} | {name.replace("_", "-"): value for name, value in values.items()})


@pytest.mark.parametrize("host", ["127.0.0.1:8470", "localhost", "LOCALHOST:99", "[::1]:8470"])
def test_loopback_names_pass_at_any_port_since_ports_are_forwarded(host: str) -> None:
    assert refusal("GET", headers(host=host)) is None


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8470", "127.0.0.1.evil.example", "localhost.evil.example:80", "0.0.0.0:8470",
     "127.0.0.1@evil.example", "evil@127.0.0.1", "localhost:port", "localhost/path", "[::1", "192.168.0.3"],
)  # fmt: skip
def test_any_other_host_is_refused(host: str) -> None:
    refused = refusal("GET", headers(host=host))
    assert refused is not None and refused[0] == 403


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40))
def test_what_passes_is_a_loopback_name_with_or_without_a_port(host: str) -> None:
    if refusal("GET", headers(host=host)) is None:
        assert host.lower().rsplit(":", 1)[0].strip("[]") in LOOPBACK_NAMES or host.lower() in LOOPBACK_NAMES


def test_two_hosts_or_none_are_refused() -> None:
    twice = Headers(raw=[(b"host", b"localhost"), (b"host", b"localhost")])
    assert refusal("GET", twice) is not None and refusal("GET", Headers({})) is not None


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "X"])
def test_every_verb_that_could_write_is_refused(verb: str) -> None:
    refused = refusal(verb, headers())
    assert refused is not None and refused[0] == 405


@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("http://127.0.0.1:8470", True),
        ("http://localhost:8470", False),
        ("http://127.0.0.1:9999", False),
        ("https://127.0.0.1:8470", False),
        ("http://evil.example", False),
        ("null", False),
    ],
)
def test_an_origin_must_be_the_servers_own(origin: str, passes: bool) -> None:
    assert (refusal("GET", headers(origin=origin)) is None) is passes


@pytest.mark.parametrize(
    ("site", "mode", "passes"),
    [
        ("same-origin", "cors", True),
        ("none", "navigate", True),
        ("cross-site", "navigate", True),
        ("cross-site", "no-cors", False),
        ("same-site", "cors", False),
    ],
)
def test_a_foreign_page_may_link_here_but_not_fetch_or_embed(site: str, mode: str, passes: bool) -> None:
    assert (refusal("GET", headers(sec_fetch_site=site, sec_fetch_mode=mode)) is None) is passes


def test_every_answer_carries_the_policy_also_a_refusal(client: TestClient) -> None:
    answers = [
        client.get("/"),
        client.get("/nothing"),
        client.post("/"),
        client.get("/", headers={"host": "evil.test"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 405, 403]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert answers[2].headers["allow"] == "GET, HEAD"


def test_no_page_has_a_script_or_a_style_in_its_text(client: TestClient) -> None:
    page = client.get("/run/arms~population-0").text
    assert "<style" not in page and " style=" not in page and " onclick=" not in page
    assert page.count("<script>") == 0
