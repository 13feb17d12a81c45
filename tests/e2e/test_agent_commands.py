"""`hermes agent`: agents from files, as a person writes and uses them."""

from pathlib import Path

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse


async def test_an_agent_is_written_shown_edited_and_removed(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    made = await hermes.run(
        *("agent", "new", "docs", "--description", "writes docs"),
        *("--tools", "files, nothing", "--budget", "$0.5", "--mode", "plan"),
    )
    assert made.code == 0, made.err
    path = hermes.home / "agents" / "docs.md"
    assert path.stat().st_mode & 0o777 == 0o600
    again = await hermes.run("agent", "new", "docs")
    assert (again.code, "exists already" in again.err) == (2, True)
    shown = await hermes.run("agent", "show", "docs", "--json")
    assert shown.code == 1
    assert f"{path}:3: no tool, toolset or server is called nothing" in shown.out
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/mode:/mood:/ "$1"\n')
    editor.chmod(0o700)
    edited = await hermes.run("agent", "edit", "docs", EDITOR=str(editor))
    assert edited.code == 1
    assert "docs.md:4: unknown key 'mood'; did you mean mode?" in edited.out
    refused = await hermes.run("--agent", "docs", "hello")
    assert (refused.code, "docs.md:4: unknown key" in refused.err) == (1, True)
    gone = await hermes.run("agent", "remove", "docs", "--yes")
    assert (gone.code, path.exists()) == (0, False)


async def test_a_bad_field_writes_nothing(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path)
    made = await hermes.run("agent", "new", "docs", "--budget", "lots")
    assert (made.code, "'lots' is not an amount" in made.err) == (2, True)
    assert not (hermes.home / "agents" / "docs.md").exists()
    for name in ("../x", "A", ""):
        assert (await hermes.run("agent", "new", name)).code == 2


async def test_a_question_is_answered_by_an_agent(tmp_path: Path) -> None:
    async with ModelServer(ScriptedResponse(text="Ahoy!")) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        folder = hermes.home / "agents"
        folder.mkdir(parents=True)
        text = "---\nmodel: small-1\ntools: [read_file]\n---\nYou are a sailor."
        (folder / "sailor.md").write_text(text)
        done = await hermes.run("--agent", "sailor", "hello")
        assert (done.code, done.out.strip()) == (0, "Ahoy!"), done.err
        request = next(one for one in server.requests if one.method == "POST")
        assert b'"model":"small-1"' in request.body.replace(b": ", b":")
        assert b"You are a sailor." in request.body
        assert b"write_file" not in request.body
