"""`hermes acp`, driven by the protocol's own client as an editor would."""

import asyncio
import base64
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from tests.fakes.first_use import OnFirstUse
from tests.fakes.identity_server import identity_server

from hermes.settings.edit import set_value
from hermes.testing.installed import InstalledHermes, executable
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import (
    ScriptedResponse,
    ServedCall,
    ServerFault,
)

if TYPE_CHECKING:
    import acp
    from acp.client.connection import ClientSideConnection
else:
    acp = OnFirstUse("acp")

TIMEOUT_S = 90.0  # a process may take a minute to start on a busy machine
WRITE = ServedCall(
    name="write_file", arguments='{"path": "made.txt", "content": "hello\\n"}'
)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005"
    "fe02fe0def46b80000000049454e44ae426082"
)


class Editor:
    """An editor: it notes every update, and answers questions from a list."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Any, list[acp.schema.PermissionOption]]] = []
        self.updates: list[Any] = []
        self.has_asked = asyncio.Event()
        self.news = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.news.set()

    async def request_permission(
        self,
        session_id: str,
        tool_call: Any,
        options: "list[acp.schema.PermissionOption]",
        **_: Any,
    ) -> "acp.schema.RequestPermissionResponse":
        self.asked.append((tool_call, options))
        self.has_asked.set()
        if not self.answers:
            raise acp.RequestError.method_not_found("session/request_permission")
        answer = self.answers.pop(0)
        if answer == "wait":
            await asyncio.sleep(TIMEOUT_S)
        if answer == "cancelled":
            return acp.schema.RequestPermissionResponse(
                outcome=acp.schema.DeniedOutcome(outcome="cancelled")
            )
        return acp.schema.RequestPermissionResponse(
            outcome=acp.schema.AllowedOutcome(outcome="selected", option_id=answer)
        )

    def on_connect(self, conn: Any) -> None:
        """Nothing to keep."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def of(self, kind: str) -> list[Any]:
        """The updates of one kind."""
        return [one for one in self.updates if one.session_update == kind]

    async def until(self, is_there: Callable[[], bool]) -> None:
        """Waits for an update after which this holds."""
        while not is_there():
            self.news.clear()
            await self.news.wait()

    @property
    def terminal_output(self) -> str:
        """What commands printed."""
        shown = [
            (one.field_meta or {}).get("terminal_output", {})
            for one in self.of("tool_call_update")
        ]
        return "".join(one.get("data", "") for one in shown)

    @property
    def text(self) -> str:
        """What Hermes said."""
        return "".join(one.content.text for one in self.of("agent_message_chunk"))


@asynccontextmanager
async def editing(
    folder: Path,
    server: ModelServer,
    editor: Editor,
    abilities: "acp.schema.ClientCapabilities | None" = None,
) -> AsyncIterator["tuple[ClientSideConnection, InstalledHermes]"]:
    hermes = InstalledHermes(folder, server.url)
    async with (
        asyncio.timeout(TIMEOUT_S),
        acp.spawn_agent_process(
            cast("acp.Client", editor),
            str(executable()),
            "acp",
            env=hermes.environ(),
            cwd=hermes.work,
            use_unstable_protocol=True,
        ) as (connection, _),
    ):
        begun = await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION,
            client_capabilities=abilities or acp.schema.ClientCapabilities(),
        )
        assert begun.agent_info is not None
        assert begun.agent_info.name == "hermes"
        yield connection, hermes


async def test_a_prompt_streams_its_answer_and_a_file_is_written_after_a_yes(
    tmp_path: Path,
) -> None:
    editor = Editor("once")
    async with (
        ModelServer(
            ScriptedResponse(text="I write.", calls=(WRITE,)), "Done now."
        ) as server,
        editing(tmp_path, server, editor) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        assert made.modes is not None
        assert made.modes.current_mode_id == "ask"
        ended = await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("write it")]
        )
        assert ended.stop_reason == "end_turn"
        assert editor.text == "I write.Done now."
        assert (hermes.work / "made.txt").read_text() == "hello\n"
        call, options = editor.asked[0]
        assert [one.kind for one in options][0::3] == ["allow_once", "reject_once"]
        diff = call.content[0]
        assert (diff.type, diff.path, diff.new_text) == (
            "diff",
            str(hermes.work / "made.txt"),
            "hello\n",
        )
        started, finished = editor.of("tool_call")[0], editor.of("tool_call_update")[-1]
        assert (started.kind, started.title) == ("edit", "Write made.txt")
        assert finished.status == "completed"


async def test_an_editor_without_a_dialogue_is_denied_at_once(tmp_path: Path) -> None:
    editor = Editor()
    async with (
        ModelServer(ScriptedResponse(calls=(WRITE,)), "I could not.") as server,
        editing(tmp_path, server, editor) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        ended = await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("write it")]
        )
        assert ended.stop_reason == "end_turn"
        assert not (hermes.work / "made.txt").exists()
        assert editor.of("tool_call_update")[-1].status == "failed"
        assert "no dialogue" in str(server.posts[-1].body)


async def test_cancel_is_always_answered(tmp_path: Path) -> None:
    editor = Editor("wait")
    async with (
        ModelServer(ScriptedResponse(calls=(WRITE,)), "never") as server,
        editing(tmp_path, server, editor) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        prompting = asyncio.ensure_future(
            connection.prompt(
                session_id=made.session_id, prompt=[acp.helpers.text_block("write it")]
            )
        )
        await editor.has_asked.wait()
        await connection.cancel(session_id=made.session_id)
        assert (await prompting).stop_reason == "cancelled"
        assert not (hermes.work / "made.txt").exists()


async def test_a_cancel_right_behind_the_prompt_is_answered_too(tmp_path: Path) -> None:
    hanging = ScriptedResponse(text="x", fault=ServerFault(hang="body"))
    async with (
        ModelServer(hanging, hanging) as server,
        editing(tmp_path, server, Editor()) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        (hermes.work / "notes.txt").write_text("many\n" * 1000)
        mention = acp.helpers.resource_link_block(
            name="notes.txt", uri=(hermes.work / "notes.txt").as_uri()
        )
        prompting = asyncio.ensure_future(
            connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("read"), mention],
            )
        )
        await asyncio.sleep(0)  # the prompt is on its way
        await connection.cancel(session_id=made.session_id)
        assert (await prompting).stop_reason == "cancelled"


async def test_a_session_is_loaded_after_a_restart_and_goes_on(tmp_path: Path) -> None:
    async with ModelServer("Paris.", "Berlin.") as server:
        async with editing(tmp_path, server, Editor()) as (connection, hermes):
            made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
            await connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("capital of France?")],
            )
        editor = Editor()
        async with editing(tmp_path, server, editor) as (connection, hermes):
            listed = await connection.list_sessions(cwd=str(hermes.work))
            assert [one.session_id for one in listed.sessions] == [made.session_id]
            await connection.load_session(
                session_id=made.session_id, cwd=str(hermes.work), mcp_servers=[]
            )
            assert (
                editor.of("user_message_chunk")[0].content.text == "capital of France?"
            )
            assert editor.text == "Paris."
            await connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("and Germany?")],
            )
            assert editor.text == "Paris.Berlin."


async def test_mentioned_files_pictures_commands_and_modes(tmp_path: Path) -> None:
    editor = Editor()
    async with (
        ModelServer("I see.", repeat=True) as server,
        editing(tmp_path, server, editor) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        resource = acp.helpers.embedded_text_resource(
            (hermes.work / "buffer.py").as_uri(), "unsaved = 1\n"
        )
        picture = base64.b64encode(PIXEL).decode()
        await connection.prompt(
            session_id=made.session_id,
            prompt=[
                acp.helpers.text_block("look at "),
                acp.helpers.resource_block(resource),
                acp.helpers.image_block(picture, "image/png"),
            ],
        )
        body = server.posts[-1].body.decode()
        assert "unsaved = 1" in body
        assert "<picture (data" in body  # this model is blind
        assert "picture" in editor.text
        await connection.set_session_mode(session_id=made.session_id, mode_id="plan")
        before = len(server.posts)
        await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("/status")]
        )
        assert "plan" in editor.text
        assert len(server.posts) == before
        commands = editor.of("available_commands_update")[0].available_commands
        assert "usage" in {one.name for one in commands}
        with pytest.raises(acp.RequestError):
            await connection.set_session_mode(
                session_id=made.session_id, mode_id="wild"
            )
        with pytest.raises(acp.RequestError):
            await connection.prompt(
                session_id="no-such-session", prompt=[acp.helpers.text_block("hi")]
            )


async def test_a_sign_in_begun_in_an_editor_says_there_how_it_ended(
    tmp_path: Path,
) -> None:
    editor = Editor()
    with identity_server() as provider:
        provider.polls = ["authorization_pending"]
        provider.interval_s = 0.1
        home = InstalledHermes(tmp_path).home
        home.mkdir(exist_ok=True)
        set_value(home / "config.yaml", "sign_ins.nous.issuer", provider.url)
        async with (
            ModelServer() as server,
            editing(tmp_path, server, editor) as (connection, hermes),
        ):
            made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
            await connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("/auth add nous")],
            )
            assert "WDJB-MJHT" in editor.text
            provider.polls = ["ok"]
            await editor.until(lambda: "Signed in with Nous Portal" in editor.text)


async def test_a_question_without_choices_is_answered_by_the_next_prompt(
    tmp_path: Path,
) -> None:
    ask = ServedCall(
        name="ask_user",
        arguments=msgspec.json.encode({"question": "Which colour?"}).decode(),
    )
    editor = Editor()
    async with (
        ModelServer(ScriptedResponse(calls=(ask,)), "Blue it is.") as server,
        editing(tmp_path, server, editor) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("paint it")]
        )
        assert "Which colour?" in editor.text
        await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("blue")]
        )
        assert editor.text.endswith("Blue it is.")
        assert "blue" in server.posts[-1].body.decode()


async def test_without_a_model_service_the_prompt_fails_in_words(
    tmp_path: Path,
) -> None:
    editor = Editor()
    async with ModelServer("hi") as server:
        url = server.url
    hermes = InstalledHermes(tmp_path, url)
    async with (
        asyncio.timeout(TIMEOUT_S),
        acp.spawn_agent_process(
            cast("acp.Client", editor),
            str(executable()),
            "acp",
            env=hermes.environ(),
            cwd=hermes.work,
        ) as (connection, _),
    ):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        with pytest.raises(acp.RequestError, match="reach"):
            await connection.prompt(
                session_id=made.session_id, prompt=[acp.helpers.text_block("hi")]
            )


async def test_an_editor_connects_a_model_in_its_terminal(tmp_path: Path) -> None:
    abilities = acp.schema.ClientCapabilities(
        auth=acp.schema.AuthCapabilities(terminal=True)
    )
    hermes = InstalledHermes(tmp_path)
    assert (await hermes.run("profile", "create", "work")).code == 0
    async with (
        asyncio.timeout(TIMEOUT_S),
        ModelServer("hello") as server,
        acp.spawn_agent_process(
            cast("acp.Client", Editor()),
            str(executable()),
            "--profile=work",
            "acp",
            env=hermes.environ({"XDG_CACHE_HOME": str(tmp_path)}),
            cwd=hermes.work,
        ) as (connection, _),
    ):
        begun = await connection.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=abilities
        )
        (method,) = begun.auth_methods or []
        assert isinstance(method, acp.schema.TerminalAuthMethod)
        with pytest.raises(acp.RequestError) as caught:
            await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        assert caught.value.code == acp.RequestError.auth_required().code
        chosen = method.env or {}
        assert (method.field_meta or {})["terminal-auth"]["env"] == chosen
        async with hermes.terminal(
            "acp",
            *(method.args or []),
            HERMES_HOME=chosen["HERMES_HOME"],
            HERMES_PROFILE=chosen["HERMES_PROFILE"],
        ) as terminal:
            await terminal.sees("API key")
            terminal.type("\x1b")
            assert await terminal.ends() == 1
        options = ("--base-url", f"{server.url}", "--model", "fake-model", "--no-test")
        assert (await hermes.run("setup", *options, **chosen)).code == 0
        await connection.authenticate(method_id=method.id)
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        done = await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("hi")]
        )
        assert done.stop_reason == "end_turn"


class LendingEditor(Editor):
    """An editor that lends its open files, and saves what it is told to write."""

    def __init__(self, *answers: str) -> None:
        super().__init__(*answers)
        self.open: dict[str, str] = {}
        self.written: list[str] = []

    async def read_text_file(
        self, session_id: str, path: str, **_: Any
    ) -> "acp.schema.ReadTextFileResponse":
        if path in self.open:
            return acp.schema.ReadTextFileResponse(content=self.open[path])
        try:
            text = await asyncio.to_thread(Path(path).read_text)
            return acp.schema.ReadTextFileResponse(content=text)
        except FileNotFoundError as error:
            raise acp.RequestError.resource_not_found(path) from error

    async def write_text_file(
        self, session_id: str, path: str, content: str, **_: Any
    ) -> "acp.schema.WriteTextFileResponse":
        self.written.append(content)
        self.open[path] = content
        await asyncio.to_thread(Path(path).write_text, content)
        return acp.schema.WriteTextFileResponse()


LENDING = acp.schema.ClientCapabilities(
    fs=acp.schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
    field_meta={"terminal_output": True},
)


def called(name: str, **arguments: Any) -> ScriptedResponse:
    text = msgspec.json.encode(arguments).decode()
    return ScriptedResponse(calls=(ServedCall(name=name, arguments=text),))


async def test_an_unsaved_file_is_read_saved_and_edited_through_the_editor_and_undone(
    tmp_path: Path,
) -> None:
    editor = LendingEditor("once")
    async with (
        ModelServer(
            called("read_file", path="a.py"),
            called("edit_file", path="a.py", old_text="unsaved", new_text="edited"),
            "Done.",
        ) as server,
        editing(tmp_path, server, editor, LENDING) as (connection, hermes),
    ):
        file = hermes.work / "a.py"
        file.write_text("saved\n")
        editor.open[str(file)] = "unsaved\n"
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("edit it")]
        )
        assert "unsaved" in server.posts[1].body.decode()
        asked = "".join(
            one.content.text for one in editor.asked[0][0].content if one.type != "diff"
        )
        assert asked.startswith("```\nedit_file ")
        assert "-unsaved" in asked
        assert "+edited" in asked
        assert editor.written == ["unsaved\n", "edited\n"]
        assert file.read_text() == "edited\n"
        await connection.prompt(
            session_id=made.session_id, prompt=[acp.helpers.text_block("/undo")]
        )
        assert file.read_text() == "unsaved\n"


async def test_a_command_is_shown_as_a_terminal_beside_a_plan_and_can_be_cancelled(
    tmp_path: Path,
) -> None:
    steps = [{"text": "look", "status": "in_progress"}]
    editor = LendingEditor("once", "once")
    async with (
        ModelServer(
            called("todo", items=steps),
            called("terminal", command="echo hello"),
            called("terminal", command="echo begun; sleep 30"),
            "never",
        ) as server,
        editing(tmp_path, server, editor, LENDING) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
        prompting = asyncio.ensure_future(
            connection.prompt(
                session_id=made.session_id, prompt=[acp.helpers.text_block("run it")]
            )
        )
        await editor.until(lambda: "begun" in editor.terminal_output)
        await connection.cancel(session_id=made.session_id)
        assert (await prompting).stop_reason == "cancelled"
        assert "hello\r\n" in editor.terminal_output
        plan = editor.of("plan")[0].entries
        assert [(one.content, one.status) for one in plan] == [("look", "in_progress")]
        shown = next(one for one in editor.of("tool_call") if one.kind == "execute")
        assert shown.content[0].terminal_id == shown.tool_call_id
        exits = [
            one.field_meta["terminal_exit"]
            for one in editor.of("tool_call_update")
            if "terminal_exit" in (one.field_meta or {})
        ]
        assert exits[0]["exit_code"] == 0


async def test_a_session_is_resumed_after_a_restart_with_its_mode_and_another_model(
    tmp_path: Path,
) -> None:
    async with ModelServer("Paris.", "Berlin.") as server:
        async with editing(tmp_path, server, Editor()) as (connection, hermes):
            made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[])
            await connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("capital of France?")],
            )
            await connection.set_session_mode(
                session_id=made.session_id, mode_id="plan"
            )
        editor = Editor()
        async with editing(tmp_path, server, editor) as (connection, hermes):
            again = await connection.resume_session(
                session_id=made.session_id, cwd=str(hermes.work), mcp_servers=[]
            )
            assert again.modes is not None
            assert again.modes.current_mode_id == "plan"
            assert not editor.of("user_message_chunk")
            assert again.config_options
            model = again.config_options[0]
            kept = await connection.set_config_option(
                session_id=made.session_id,
                config_id=model.id,
                value=model.current_value,
            )
            assert kept.config_options[0].current_value == model.current_value
            with pytest.raises(acp.RequestError):
                await connection.set_config_option(
                    session_id=made.session_id, config_id="colour", value="red"
                )
            await connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("and Germany?")],
            )
            assert editor.text == "Berlin."
            assert "capital of France?" in server.posts[-1].body.decode()


async def test_a_prompt_of_the_editors_mcp_server_is_a_command(tmp_path: Path) -> None:
    program = Path(__file__).parents[1] / "integration" / "mcp" / "library_server.py"
    library = acp.schema.McpServerStdio(
        name=".lib.",  # editors allow what a tool's name can't have
        command=sys.executable,
        args=[str(program), str(tmp_path / "notes")],
        env=[],
    )
    editor = Editor()
    async with (
        ModelServer("Reviewed.") as server,
        editing(tmp_path, server, editor) as (connection, hermes),
    ):
        made = await connection.new_session(cwd=str(hermes.work), mcp_servers=[library])
        await connection.prompt(
            session_id=made.session_id,
            prompt=[acp.helpers.text_block("/lib:review a.py @lib:notes://today")],
        )
        body = server.posts[-1].body.decode()
        assert "Review a.py and look for" in body
        assert "Water the plants." in body
        assert editor.text == "Reviewed."
        await connection.resume_session(
            session_id=made.session_id, cwd=str(hermes.work), mcp_servers=[library]
        )
        await editor.until(
            lambda: any(
                command.name == "lib:review"
                for update in editor.of("available_commands_update")
                for command in update.available_commands
            )
        )
        with pytest.raises(acp.RequestError, match="needs: path"):
            await connection.prompt(
                session_id=made.session_id,
                prompt=[acp.helpers.text_block("/lib:review")],
            )
