"""What is learned, in the chat: deciding on proposals with a key each, and skills as commands."""

import json
import os
from pathlib import Path

import msgspec

from hermes.learning.change import (
    MemoryChange,
    MemoryEdit,
    Provenance,
    SkillChange,
    SkillFileChange,
)
from hermes.learning.learning_service import LearningService, open_learning
from hermes.settings import Home
from hermes.settings.sections import LearningSettings
from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

READY = "Ctrl-D quits ›"
ENTER, ALT_L = "\r", "\x1bl"
SKILL = "---\nname: {name}\ndescription: Does {name}. Use it.\n---\n1. Boil water.\n"


def learning_of(hermes: InstalledHermes) -> LearningService:
    return open_learning(Home(hermes.home).ensure(), LearningSettings(), os.environ)


def propose(learning: LearningService, *texts: str) -> None:
    for text in texts:
        change = MemoryChange((MemoryEdit("add", text),))
        learning.propose(
            change, Provenance("review", "session-1"), "a review suggests it"
        )


async def test_each_proposal_takes_one_key(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    learning = learning_of(hermes)
    propose(learning, "likes tea", "hates tea", "has a dog")
    async with hermes.terminal() as terminal:
        await terminal.sees("3 proposed changes to review: /learn or Alt-L")
        terminal.type(ALT_L)
        for number, key, said in (
            (1, "y", "Kept as change"),
            (2, "n", "Rejected"),
            (3, "s", "Left for later."),
        ):
            await terminal.until(
                lambda shown, number=number: (
                    f"{number}/3 memory" in shown and "Keep it?" in shown
                )
            )
            terminal.type(key)
            await terminal.sees(said)
        shown = await terminal.until(
            lambda shown: "1 kept, 1 rejected, 1 to review: /learn." in shown
        )
        assert "│ +- likes tea" in shown
        assert "\x1b[32m+- likes tea" in terminal.coloured
        terminal.type("/learn" + ENTER)
        await terminal.sees("1/1 memory")
        await terminal.sees("Keep it?", times=4)
        terminal.type("y")
        await terminal.sees("1 kept.")
    assert learning.memory.read("memory") == "- likes tea\n- has a dog\n"
    assert [one.status for one in learning.proposals.all()] == [
        "approved",
        "rejected",
        "approved",
    ]


async def test_other_words_leave_the_proposals_waiting_and_are_said(
    tmp_path: Path,
) -> None:
    async with ModelServer(*[ScriptedResponse(text="Hello.")] * 3) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        propose(learning_of(hermes), "likes tea")
        async with hermes.terminal() as terminal:
            await terminal.sees("to review")
            terminal.type(ALT_L)
            await terminal.sees("Keep it?")
            terminal.type("hello there" + ENTER)
            await terminal.sees("1 to review: /learn.")
            await terminal.sees("Hello.")
        assert [one.status for one in learning_of(hermes).proposals.all()] == [
            "pending"
        ]


async def test_a_review_ends_with_one_line_that_names_the_key(tmp_path: Path) -> None:
    note = {"edits": [{"action": "add", "text": "likes tea", "file": "user"}]}
    call = ServedCall("memory", json.dumps(note))
    async with ModelServer(
        ScriptedResponse(text="Hello."),
        ScriptedResponse(calls=(call,)),
        ScriptedResponse(text="done"),
    ) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        settings = {"HERMES_LEARNING_TURNS": "1", "HERMES_AUXILIARY_TITLE": "off"}
        async with hermes.terminal(size=(120, 24), **settings) as terminal:
            await terminal.sees(READY)
            terminal.type("hello" + ENTER)
            line = (
                "Learned: memory: add user. 1 to approve (p1). Review: /learn or Alt-L"
            )
            await terminal.until(lambda shown: line in shown)
            terminal.type(ALT_L)
            await terminal.sees("Keep it?")
            terminal.type("y")
            await terminal.sees("1 kept.")
        assert learning_of(hermes).memory.read("user") == "- likes tea\n"


async def test_a_dumb_terminal_decides_with_lines(tmp_path: Path) -> None:
    hermes = InstalledHermes(tmp_path, "http://127.0.0.1:9/v1")
    propose(learning_of(hermes), "likes tea")
    async with hermes.terminal(TERM="dumb") as terminal:
        await terminal.sees("to review")
        terminal.type("/learn\n")
        await terminal.sees("Keep it?")
        terminal.type("y\n")
        await terminal.sees("1 kept.")
    assert learning_of(hermes).memory.read("memory") == "- likes tea\n"


async def test_a_skill_is_a_command_and_shadows_none(tmp_path: Path) -> None:
    async with ModelServer(*[ScriptedResponse(text="Done.")] * 5) as server:
        hermes = InstalledHermes(tmp_path, server.url)
        learning = learning_of(hermes)
        for name in ("brew-tea", "status"):
            change = SkillChange(
                name, (SkillFileChange("SKILL.md", None, SKILL.format(name=name)),)
            )
            learning.apply(change, Provenance("user"))
        async with hermes.terminal() as terminal:
            await terminal.sees(READY)
            terminal.type("/bre")
            await terminal.sees("/brew-tea")
            terminal.type("\t for two" + ENTER)
            await terminal.sees("Done.")
            shown = await terminal.until(lambda shown: "tokens" in shown)
            assert "› /brew-tea for two" in shown
            assert "Boil water" not in shown
            terminal.type("/help" + ENTER)
            await terminal.until(lambda shown: "Commands and keys" in shown)
            terminal.type("G")
            await terminal.until(
                lambda shown: "/brew-tea" in shown.rpartition("Skills")[2]
            )
            terminal.type("q")
            await terminal.until(lambda shown: "Commands and keys" not in shown)
            terminal.type("/status" + ENTER)
            await terminal.sees("approvals")
            terminal.type("/skill:status now" + ENTER)
            await terminal.until(
                lambda shown: "Done." in shown.partition("› /skill:status now")[2]
            )
        said = [
            msgspec.json.decode(post.body)["messages"][-1]["content"]
            for post in server.posts
        ]
        said = [text for text in said if text.startswith("/")]
        assert said[0].startswith('/brew-tea for two\n\n<skill name="brew-tea">')
        assert "1. Boil water." in said[0]
        assert said[1].startswith('/skill:status now\n\n<skill name="status">')
        assert learning.skills.records.uses()["brew-tea"].commands == 1
