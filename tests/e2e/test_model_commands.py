"""`hermes model`, `hermes setup` and `hermes usage` as a user runs them."""

import json
import stat
from pathlib import Path

import msgspec
import pytest

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer, Recorded
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall, ServerFault

KEY = "sk-test-secret-1234567890abcdef"


async def test_the_list_shows_providers_prices_and_keys(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    listed = json.loads(
        (await hermes.run("model", "list", "--json", ANTHROPIC_API_KEY=KEY)).out
    )["models"]
    found = {one["provider"]: one for one in listed}
    assert found["anthropic"]["key_set"]
    assert found["anthropic"]["current"]
    assert found["anthropic"]["output_price"] > 0
    assert not found["openai"]["key_set"]
    shown = await hermes.run("model", ANTHROPIC_API_KEY=KEY)
    assert "anthropic" in shown.out
    assert KEY not in shown.out + shown.err


async def test_a_picked_model_answers_from_then_on(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run(
        "model", "pick", "anthropic:claude-opus-5", ANTHROPIC_API_KEY=KEY
    )
    assert done.code == 0
    shown = json.loads(
        (await hermes.run("model", "show", "--json", ANTHROPIC_API_KEY=KEY)).out
    )
    assert (shown["provider"], shown["model"]) == ("anthropic", "claude-opus-5")
    await hermes.run("model", "pick", "openrouter/z-ai/glm-5")
    assert (await hermes.run("config", "get", "model.default")).out == "z-ai/glm-5\n"


async def test_a_name_that_the_service_does_not_list_is_refused(tmp_path: Path) -> None:
    async with ModelServer(models=("fake-1", "other")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("model", "pick", "fake-2")
        assert done.code == 2
        assert "has no model called 'fake-2'" in done.err
        assert "Did you mean fake-1?" in done.err
        assert not (hermes.home / "config.yaml").exists()
        assert (await hermes.run("model", "pick", "fake-2", "--force")).code == 0
        done = await hermes.run("model", "pick", "fake-1")
        assert "Now using" in done.out
        assert "comes from OPENAI_BASE_URL" in done.err


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("nonsense", "See: hermes model list"),
        ("anthropci", "Did you mean anthropic?"),
        ("claude-sonnet-5-5", "Did you mean anthropic:claude-sonnet-5-5?"),
        ("embedded:bas", "Did you mean base?"),
    ],
)
async def test_a_local_model_that_does_not_exist_is_not_picked(
    tmp_path: Path, name: str, hint: str
) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("model", "pick", name)
    assert done.code == 2
    assert "There is no local model" in done.err
    assert hint in done.err
    assert not (hermes.home / "config.yaml").exists()
    assert (await hermes.run("model", "pick", "base")).code == 0


async def test_picking_without_a_terminal_needs_a_name(tmp_path: Path) -> None:
    done = await InstalledHermes(tmp_path).run("model", "pick")
    assert done.code == 2
    assert "hermes model pick PROVIDER:MODEL" in done.err


async def test_a_service_of_ones_own_is_added_and_asked(tmp_path: Path) -> None:
    async with ModelServer("ok", "From the lab.") as server:
        hermes = InstalledHermes(tmp_path)
        done = await hermes.run(
            "model", "add", "lab", "--base-url", server.url, "--model", "lab-1"
        )
        assert done.code == 0
        assert "Trying lab ... it answers" in done.out
        assert (await hermes.run("-z", "hi")).out == "From the lab.\n"
        assert msgspec.json.decode(server.posts[1].body)["model"] == "lab-1"


async def test_a_service_that_does_not_answer_is_not_added_unless_forced(
    tmp_path: Path,
) -> None:
    async with ModelServer("still me") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        dead = ("model", "add", "dead", "--base-url", "http://127.0.0.1:9/v1")
        done = await hermes.run(*dead, "--model", "x")
        assert (done.code, "Trying dead ... failed." in done.out) == (1, True)
        assert "dead was not added" in done.err
        assert "--force" in done.err
        assert not (hermes.home / "config.yaml").exists()
        assert (await hermes.run("-z", "hi")).out == "still me\n"
        forced = await hermes.run(*dead, "--force")
        assert (forced.code, "Added dead." in forced.out) == (0, True)
        picked = await hermes.run("model", "pick", "dead:x")
        assert (picked.code, "The model was not changed." in picked.err) == (1, True)


async def test_the_only_model_of_a_service_needs_no_name(tmp_path: Path) -> None:
    async with ModelServer("ok", models=("lab-1",)) as server:
        hermes = InstalledHermes(tmp_path)
        done = await hermes.run("model", "add", "lab", "--base-url", server.url)
        assert done.code == 0
        assert "Now using lab-1." in done.out


async def test_a_service_whose_key_is_not_set_is_not_added(tmp_path: Path) -> None:
    async with ModelServer() as server:
        hermes = InstalledHermes(tmp_path)
        lab = ("model", "add", "lab", "--base-url", server.url, "--model", "lab-1")
        done = await hermes.run(*lab, "--key-env", "LAB_API_KEY")
        assert done.code == 1
        assert "hermes config set LAB_API_KEY" in done.err
        assert not (hermes.home / "config.yaml").exists()


async def test_a_rejected_key_is_named_by_its_own_variable(tmp_path: Path) -> None:
    rejected = ScriptedResponse(fault=ServerFault(status=401, message="no such key"))
    async with ModelServer(rejected) as server:
        hermes = InstalledHermes(tmp_path)
        lab = ("model", "add", "lab", "--base-url", server.url, "--model", "lab-1")
        done = await hermes.run(*lab, "--key-env", "LAB_API_KEY", LAB_API_KEY=KEY)
        assert done.code == 1
        assert "lab rejected the API key (401)" in done.err
        assert "hermes config set LAB_API_KEY" in done.err
        assert "OPENAI_API_KEY" not in done.err


async def test_a_provider_that_does_not_exist_is_not_saved(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("config", "set", "model.provider", "antropic")
    assert done.code == 1
    assert "Did you mean anthropic?" in done.err
    assert not (hermes.home / "config.yaml").exists()
    for name in ("anthropic", "claude", "auto", "embedded"):
        assert (await hermes.run("config", "set", "model.provider", name)).code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "nonsense"), "There is no local model"),
        (("add", "Lab!", "--base-url", "http://x/v1"), "can't be a provider's name"),
        (("add", "lab", "--base-url", "lab:8000"), "not a usable address"),
        (("add", "lab", "--base-url", "http://x/v1", "--key-env", KEY), "not a key"),
        (("add", "lab", "--model", "x"), "also need --base-url"),
        (("add", "http://x/v1"), "hermes model add NAME --base-url http://x/v1"),
    ],
)
async def test_what_can_not_be_added(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("model", *arguments)
    assert done.code == 2
    assert words in done.err
    assert KEY not in done.err
    assert not (hermes.home / "config.yaml").exists()


async def test_a_file_that_is_no_gguf_is_not_added(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    (hermes.work / "model.gguf").write_bytes(b"not a model")
    done = await hermes.run("model", "add", "./model.gguf")
    assert done.code == 1
    assert "is not a GGUF file" in done.err


async def test_a_gguf_file_is_registered(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    path = hermes.work / "my.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    assert (await hermes.run("model", "add", "my.gguf")).code == 0
    shown = json.loads((await hermes.run("model", "show", "--json")).out)
    assert (shown["provider"], shown["model"]) == ("embedded", str(path))


async def test_a_model_that_answers_and_calls_a_tool_passes_the_quick_check(
    tmp_path: Path,
) -> None:
    read = ScriptedResponse(calls=(ServedCall("read_file", '{"path": "notes.md"}'),))
    async with ModelServer("4", read, "It is about a bicycle.") as server:
        done = await InstalledHermes(tmp_path, server.url).run(
            "model", "test", "fake-1"
        )
        assert (done.code, done.err) == (0, "")
        assert "It works." in done.out
        assert "hermes model test --full" in done.out


async def test_a_model_that_calls_no_tool_fails_the_quick_check(
    tmp_path: Path,
) -> None:
    async with ModelServer("4", "I can't read files.") as server:
        done = await InstalledHermes(tmp_path, server.url).run(
            "model", "test", "fake-1"
        )
        assert done.code == 1
        assert "ok   answers a question" in done.out
        assert "fail calls a tool" in done.out


async def test_the_tasks_are_run_and_counted(tmp_path: Path) -> None:
    async with ModelServer("I don't know.", repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        answers = await hermes.run(
            "model", "test", "fake-1", "--kind", "answer", "--json"
        )
        score = json.loads(answers.out)
        assert score["total"] == len(score["tasks"]) >= 5
        assert score["passed"] == sum(task["passed"] for task in score["tasks"])
        shown = await hermes.run("model", "test", "fake-1", "--kind", "choose")
        assert "choose a tool" in shown.out
        assert "in all" in shown.out
        assert (score["passed"], answers.code, shown.code) == (
            0,
            1,
            0,
        )  # to choose no tool is right now and then


async def test_a_model_that_fails_ends_the_test_with_1(tmp_path: Path) -> None:
    failing = ScriptedResponse(fault=ServerFault(status=400, message="broken"))
    async with ModelServer(failing, repeat=True) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("model", "test", "fake-1", "--kind", "choose")
        assert done.code == 1
        assert "Stopped" in done.err


async def test_a_model_that_fails_now_and_then_ends_the_test_with_1(
    tmp_path: Path,
) -> None:
    replies = [
        ScriptedResponse(text="I don't know."),
        ScriptedResponse(fault=ServerFault(status=400, message="broken")),
    ]

    def respond(_: Recorded) -> ScriptedResponse:
        replies.reverse()
        return replies[0]

    async with ModelServer(respond=respond) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        done = await hermes.run("model", "test", "fake-1", "--kind", "choose", "--json")
        assert json.loads(done.out)["passed"] > 0
        assert done.code == 1


async def test_setup_tries_the_connection_and_writes_it_down(tmp_path: Path) -> None:
    async with ModelServer("ok", "Set up.") as server:
        hermes = InstalledHermes(tmp_path)
        arguments = (
            "setup",
            "--base-url",
            server.url,
            "--model",
            "own-1",
            "--key-env",
            "OWN_API_KEY",
        )
        done = await hermes.run(*arguments, stdin=KEY + "\n")
        assert done.code == 0
        assert "it answers" in done.out
        assert KEY not in done.out + done.err
        assert stat.S_IMODE((hermes.home / ".env").stat().st_mode) == 0o600
        assert KEY not in (hermes.home / "config.yaml").read_text()
        assert (await hermes.run("-z", "hi")).out == "Set up.\n"
        assert server.posts[1].headers["authorization"] == f"Bearer {KEY}"


async def test_a_setup_that_fails_changes_nothing(tmp_path: Path) -> None:
    async with ModelServer(
        ScriptedResponse(fault=ServerFault(status=401, message="no such key"))
    ) as server:
        hermes = InstalledHermes(tmp_path)
        done = await hermes.run("setup", "--base-url", server.url, "--model", "own-1")
        assert done.code == 1
        assert "Nothing was changed" in done.err
        assert not (hermes.home / "config.yaml").exists()


async def test_setup_without_a_terminal_says_what_to_give(tmp_path: Path) -> None:
    done = await InstalledHermes(tmp_path).run("setup")
    assert done.code == 2
    assert "hermes setup --local --fetch" in done.err


async def test_usage_counts_tokens_and_names_unknown_prices(tmp_path: Path) -> None:
    async with ModelServer("one", "two") as server:
        hermes = InstalledHermes(tmp_path, server.url)
        assert "There were no model calls" in (await hermes.run("usage")).out
        await hermes.run("--model", "claude-opus-5", "-z", "hi")
        await hermes.run("--model", "mystery-1", "-z", "hi")
        total = json.loads((await hermes.run("usage", "--json")).out)["total"]
        assert (total["calls"], total["input_tokens"], total["output_tokens"]) == (
            2,
            40,
            16,
        )
        assert total["unpriced_calls"] == 1
        assert total["cost_usd"] > 0
        shown = (await hermes.run("usage", "--days", "1")).out
        assert "total" in shown
        assert "mystery-1" in shown.rpartition("is unknown")[2]
        assert (
            json.loads((await hermes.run("usage", "--session", "last", "--json")).out)[
                "total"
            ]["calls"]
            == 1
        )
