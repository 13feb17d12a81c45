"""What the page's views are told: who is at work, how skills were used, what a plugin holds, what would be asked."""

from pathlib import Path

import msgspec
import pytest
from tests.fakes.traps import Traps
from tests.integration.dashboard.harness import Harness, opened

from hermes.learning.change import Provenance, SkillChange, SkillFileChange
from hermes.learning.learning_service import open_learning
from hermes.schema.events import SessionCreated
from hermes.settings import Settings
from hermes.settings.load import environment
from hermes.settings.models import ModelSettings

_SKILL = "---\nname: tidy\ndescription: Tidies up.\n---\nPut things back.\n"


async def test_sessions_that_are_at_work_are_named(harness: Harness) -> None:
    app = harness.app
    child = SessionCreated(surface="delegate", kind="child", parent="p", root="p")
    idle, busy = (
        app.begin(SessionCreated(surface="tui")).session,
        app.begin(child).session,
    )
    assert (await harness.call("GET", "/api/status"))["running"] == []
    lease = app.store.leases.acquire(busy)
    assert (await harness.call("GET", "/api/status"))["running"] == [busy]
    app.store.leases.release(lease)
    assert (await harness.call("GET", "/api/status"))["running"] == []
    assert idle


async def test_a_model_that_is_not_on_this_machine_is_missed_before_the_first_question(
    tmp_path: Path,
) -> None:
    model = ModelSettings(provider="embedded", default=str(tmp_path / "none.gguf"))
    async with opened(tmp_path, Settings(model=model)) as harness:
        status = await harness.call("GET", "/api/status", scope="observe")
        assert status["model"] == ""
        assert "none.gguf can't be read" in status["model_problem"]


async def test_a_machine_without_a_model_asks_to_connect_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_CACHE", str(tmp_path / "cache"))
    async with opened(tmp_path, Settings()) as harness:
        status = await harness.call("GET", "/api/status", scope="observe")
        assert status["model"] == ""
        assert status["model_problem"] == "No model is connected yet."


async def test_a_secret_among_the_words_of_a_server_is_not_shown(
    harness: Harness,
) -> None:
    harness.app.home.config.write_text(
        "mcp_servers:\n  a:\n    command: prog\n    args: ['-y', 'files', '--token', 'verysecretword']\n"
    )
    listed = await harness.call("GET", "/api/settings", scope="observe")
    (servers,) = [one for one in listed["settings"] if one["key"] == "mcp_servers"]
    assert servers["value"]["a"]["args"] == ["-y", "files", "--token", "********"]
    assert servers["masked"]


async def test_the_doctor_runs_nothing_of_the_folder_it_is_started_in(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traps = Traps(tmp_path / "full-of-traps")
    monkeypatch.chdir(traps.folder)
    for name, value in traps.environ.items():
        monkeypatch.setenv(name, value)
    assert (await harness.call("GET", "/api/doctor"))["findings"]
    assert traps.sprung == []


async def test_the_page_is_told_that_codex_runs_the_turns(tmp_path: Path) -> None:
    for name, default in (("own", ""), ("named", "gpt-5.5")):
        settings = Settings(
            model=ModelSettings(default=default, openai_runtime="codex_app_server")
        )
        async with opened(tmp_path / name, settings) as harness:
            session = harness.app.begin(
                SessionCreated(surface="dashboard", cwd=str(tmp_path))
            ).session
            status = await harness.call("GET", "/api/status", scope="observe")
            detail = await harness.call(
                "GET", f"/api/sessions/{session}", scope="observe"
            )
            assert status["model"] == f"codex:{default}".removesuffix(":")
            assert detail["model"] == f"codex {default}".rstrip()


async def test_a_command_is_judged_by_mode_and_reach(harness: Harness) -> None:
    async def verdict(**body: str) -> str:
        answer = await harness.call("POST", "/api/policy/check", body, scope="observe")
        return str(answer["verdict"])

    assert await verdict(command="ls") == "allow"
    assert await verdict(command="rm -rf /", mode="full") == "forbid"
    assert await verdict(command="curl https://example.org", reach="network") == "ask"
    assert (
        await verdict(command="curl https://example.org", reach="network", mode="full")
        == "allow"
    )
    wrong = await harness.ask(
        "POST", "/api/policy/check", {"command": "ls", "mode": "wild"}
    )
    assert (wrong.status_code, "mode" in wrong.json()["error"]) == (422, True)


async def test_skills_say_where_they_came_from_and_how_they_were_used(
    harness: Harness,
) -> None:
    learning = open_learning(
        harness.app.home, harness.app.settings.learning, environment()
    )
    learning.apply(
        SkillChange("tidy", (SkillFileChange("SKILL.md", None, _SKILL),)),
        Provenance("model", "s1"),
    )
    learning.called("/tidy")
    rows = (await harness.call("GET", "/api/skills", scope="observe"))["skills"]
    row = next(one for one in rows if one["name"] == "tidy")
    assert (row["origin"], row["source"], row["views"], row["commands"]) == (
        "agent",
        "s1",
        0,
        1,
    )
    assert row["last_used"] > 0


async def test_a_note_is_kept_replaced_and_removed(harness: Harness) -> None:
    view = await harness.call(
        "POST", "/api/memory", {"action": "add", "text": "Tea, no coffee."}
    )
    (memory, _) = view["files"]
    assert (memory["text"], memory["length"], memory["limit"]) == (
        "- Tea, no coffee.\n",
        18,
        6000,
    )
    assert "Tea" in (harness.app.home.memories / "MEMORY.md").read_text()
    again = {"action": "replace", "old": "Tea", "text": "Water."}
    assert (await harness.call("POST", "/api/memory", again))["files"][0][
        "text"
    ] == "- Water.\n"
    gone = await harness.call(
        "POST", "/api/memory", {"action": "remove", "old": "Water"}
    )
    assert gone["files"][0]["text"].strip() == ""
    nothing = await harness.ask(
        "POST", "/api/memory", {"action": "remove", "old": "Water"}
    )
    assert (nothing.status_code, bool(nothing.json()["error"])) == (400, True)
    entries = (await harness.call("GET", "/api/learning/history?under=memories"))[
        "entries"
    ]
    assert [one["origin"].get("by", "user") for one in entries] == ["user"] * 3


async def test_a_plugin_is_read_before_it_is_enabled(harness: Harness) -> None:
    folder = harness.app.home.plugins / "peek" / "dashboard"
    (folder / "art").mkdir(parents=True)
    (folder / "manifest.json").write_bytes(
        msgspec.json.encode({"name": "peek", "api": "plugin_api.py"})
    )
    (folder / "plugin_api.py").write_text("raise SystemExit('it ran')\n")
    (folder / "art" / "dot.png").write_bytes(b"\x89PNG\0\0")
    seen = await harness.call("GET", "/api/plugins/peek", scope="observe")
    assert (seen["plugin"]["state"], seen["folder"]) == ("off", str(folder.parent))
    assert [
        (one["path"], one["size"], one["text"] is None) for one in seen["files"]
    ] == [
        ("dashboard/art/dot.png", 6, True),
        ("dashboard/manifest.json", 37, False),
        ("dashboard/plugin_api.py", 27, False),
    ]
    assert seen["files"][2]["text"] == "raise SystemExit('it ran')\n"
    _link(folder)
    broken = await harness.call("GET", "/api/plugins/peek", scope="observe")
    assert (broken["plugin"]["state"], broken["files"]) == ("broken", [])
    assert (await harness.ask("GET", "/api/plugins/nobody")).status_code == 404


def _link(folder: Path) -> None:
    """A link to what lies outside, as somebody would plant it to have it shown."""
    (folder / "secret.txt").symlink_to("/etc/hostname")
