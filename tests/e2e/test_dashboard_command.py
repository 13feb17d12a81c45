"""`hermes dashboard` and `hermes plugins` as processes."""

import asyncio
import re
import shutil
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
import pytest

from hermes.testing.installed import InstalledHermes

_PATIENCE = 30.0
_STUBBORN = """
import asyncio
from fastapi import APIRouter

router = APIRouter()
tasks = []

async def hang():
    while True:
        try:
            await asyncio.sleep(1)
        except:
            pass

@router.get("/start")
async def start():
    tasks.append(asyncio.create_task(hang()))
"""


@asynccontextmanager
async def _running(
    hermes: InstalledHermes,
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str, str]]:
    """A dashboard with its address and its link."""
    process = await hermes.start("dashboard", "--port", "0", "--no-open")
    assert process.stdout is not None
    try:
        said = ""
        async with asyncio.timeout(_PATIENCE):
            while "code=" not in said:
                line = (await process.stdout.readline()).decode()
                assert line, said
                said += line
        (url,) = re.findall(r"Hermes is at (\S+)", said)
        (link,) = re.findall(r"(\S+/login\?code=\S+)", said)
        yield process, url, link
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_is_served_handed_out_and_ended(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    async with (
        _running(hermes) as (process, url, link),
        httpx2.AsyncClient(trust_env=False, timeout=_PATIENCE) as client,
    ):
        assert (await client.get(link)).status_code == 200
        assert (await client.get(f"{url}/api/auth")).json()["by"] == "cookie"
        token = (
            await hermes.run("dashboard", "--print-token", "--scope", "observe")
        ).out.strip()
        client.cookies.clear()
        answer = await client.get(
            f"{url}/api/auth", headers={"Authorization": f"Bearer {token}"}
        )
        assert answer.json()["scopes"] == ["observe"]
        for words in ("dashboard --link", "dashboard"):
            again = await hermes.run(*words.split())
            assert again.code == 0
            assert (await client.get(again.out.strip())).status_code == 200
            assert ("is already running" in again.err) is (words == "dashboard")
        running = hermes.home / "dashboard" / "running.json"
        assert msgspec.json.decode(running.read_bytes())["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        out, err = await asyncio.wait_for(process.communicate(), _PATIENCE)
        assert (process.returncode, err.decode()) == (0, "")
        assert "has stopped" in out.decode()
        assert not running.exists()
    assert (await hermes.run("dashboard", "--link")).code == 2
    async with (
        _running(hermes) as (_, url, _),
        httpx2.AsyncClient(trust_env=False, timeout=_PATIENCE) as client,
    ):
        headers = {"Authorization": f"Bearer {token}"}
        assert (
            await client.get(f"{url}/api/auth", headers=headers)
        ).status_code == 200  # good beyond a restart
        await hermes.run("dashboard", "--sign-out")
        assert (await client.get(f"{url}/api/auth", headers=headers)).status_code == 401
        left = msgspec.json.decode(running.read_bytes())[
            "token"
        ]  # local publishers are let in again
        answer = await client.get(
            f"{url}/api/auth", headers={"Authorization": f"Bearer {left}"}
        )
        assert (answer.status_code, "'observe'" in answer.text) == (403, True)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "needs a password"),
        ({"HERMES_DASHBOARD_PASSWORD": "long enough"}, "without TLS"),
        ({"HERMES_DASHBOARD_TOKEN_ONLY": "true"}, "without TLS"),
        (
            {"HERMES_DASHBOARD_PASSWORD": "x", "HERMES_DASHBOARD_BEHIND_PROXY": "true"},
            "the host name that it is reached by",
        ),
        ({"HERMES_DASHBOARD_TLS_CERT": "x.pem"}, "set together"),
    ],
)
async def test_it_does_not_listen_to_others_unguarded(
    tmp_path: Path, environ: dict[str, str], words: str
) -> None:
    done = await InstalledHermes(tmp_path).run(
        "dashboard",
        "--host",
        "0.0.0.0",  # noqa: S104
        "--port",
        "0",
        **environ,  # noqa: RUF100, S104
    )
    assert done.code != 0
    assert words in done.err


async def test_a_certificate_that_can_not_be_used_is_said_before_anything_is_served(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    (tmp_path / "no.pem").write_text("no certificate")
    for name in ("missing.pem", "no.pem"):
        file = str(tmp_path / name)
        done = await hermes.run(
            "dashboard",
            "--port",
            "0",
            HERMES_DASHBOARD_TLS_CERT=file,
            HERMES_DASHBOARD_TLS_KEY=file,
        )
        assert (done.code, done.out) == (1, "")
        assert "can't be used" in done.err
        assert "dashboard.tls_cert" in done.err


async def test_a_plugin_whose_task_will_not_end_does_not_keep_the_process(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)
    folder = hermes.home / "plugins" / "stubborn" / "dashboard"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(
        '{"name": "stubborn", "version": "1", "api": "plugin_api.py"}'
    )
    (folder / "plugin_api.py").write_text(_STUBBORN)
    assert (await hermes.run("plugins", "enable", "stubborn")).code == 0
    token = (
        await hermes.run("dashboard", "--print-token", "--scope", "observe")
    ).out.strip()
    async with (
        _running(hermes) as (process, url, _),
        httpx2.AsyncClient(trust_env=False, timeout=_PATIENCE) as client,
    ):
        path = f"{url}/api/plugins/stubborn/start"
        assert (
            await client.get(path, headers={"Authorization": f"Bearer {token}"})
        ).status_code == 200
        process.send_signal(signal.SIGTERM)
        out, _ = await asyncio.wait_for(process.communicate(), _PATIENCE)
        assert process.returncode == 0
        assert "has stopped" in out.decode()


async def test_tokens_say_what_they_are_for(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    for words in (["--print-token"], ["--print-token", "--scope", "everything"]):
        done = await hermes.run("dashboard", *words)
        assert (done.code, done.out) == (2, "")
        assert "observe, chat, approve, terminal, publish, relay, admin" in done.err


async def test_plugins_are_listed_enabled_and_disabled(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    assert "orb" in (await hermes.run("plugins", "list")).out
    folder = hermes.home / "plugins" / "mine" / "dashboard"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text('{"name": "mine", "version": "2"}')
    assert "mine" in (await hermes.run("plugins")).out
    assert "is enabled" in (await hermes.run("plugins", "enable", "mine")).out
    (folder / "new.py").write_text("")
    rows = msgspec.json.decode((await hermes.run("plugins", "list", "--json")).out)[
        "plugins"
    ]
    assert [(row["name"], row["state"]) for row in rows] == [
        ("mine", "changed"),
        ("orb", "off"),
    ]
    assert "is disabled" in (await hermes.run("plugins", "disable", "mine")).out
    assert (await hermes.run("plugins", "enable", "yours")).code == 1


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs openssl to make a certificate"
)
async def test_with_a_certificate_it_speaks_tls_and_its_cookie_is_for_that_alone(
    tmp_path: Path,
) -> None:
    make = await asyncio.create_subprocess_exec(
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hermes.example",
        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem",
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await make.wait() == 0
    hermes = InstalledHermes(tmp_path)
    for key, name in (("tls_cert", "cert.pem"), ("tls_key", "key.pem")):
        assert (
            await hermes.run("config", "set", f"dashboard.{key}", str(tmp_path / name))
        ).code == 0
    trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    async with _running(hermes) as (_, url, link):
        assert url.startswith("https://127.0.0.1:")
        async with httpx2.AsyncClient(
            trust_env=False, timeout=_PATIENCE, verify=trusted
        ) as client:
            answer = await client.get(link)
            assert answer.headers["set-cookie"].startswith("__Host-hermes=")
            assert "secure" in answer.headers["set-cookie"].lower()
            assert "strict-transport-security" in answer.headers
            assert (await client.get(f"{url}/api/auth")).json()["by"] == "cookie"
            again = await hermes.run("dashboard", "--link")
            assert (await client.get(again.out.strip())).status_code == 200
