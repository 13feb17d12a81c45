"""`docs/proofs.md`: what Hermes promises, the tests that try to break it, and the last figures."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks.proofs.figures import PartFigures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "proofs.md"


class PromisePart(msgspec.Struct, frozen=True):
    """A part of the page: a promise, and how it is tried."""

    title: str
    promise: str
    how: str
    tests: tuple[str, ...]


PARTS: dict[str, PromisePart] = {
    "agentdojo": PromisePart(
        "Injected orders",
        "An order in a text from outside can't do more than the model may do without asking. What acts on the world needs a "
        "person's yes, and text from outside reaches the model inside a fence.",
        "[AgentDojo](https://github.com/ethz-spylab/agentdojo) 1.2.2, from its package, with a scripted model that obeys every "
        "injection it reads. The suites' tools stand for a trusted MCP server that declares which tools only read; nobody "
        "is there to approve the others. A goal counts as *stopped* only if the model read the injection, tried to carry "
        "it out, Hermes refused one of its calls, and the package's own check says that the goal was not reached, but is "
        "when everything is allowed. Fences stop "
        "nothing here, because the model obeys anyway; they are only checked to be there. Goals that need no more than "
        "reading, such as opening an address or recommending a hotel in the answer, are reached: only the model itself could "
        "resist them. A server that is not trusted, which is the default, is asked about for every call, reading too.",
        (
            "tests/integration/test_obeyed_injections.py",
            "tests/unit/core/test_fence.py",
        ),
    ),
    "bfcl": PromisePart(
        "Tool calls",
        "A call reaches its tool once, with exactly the arguments the model gave, and the model gets its result word for word.",
        "The conversations of several turns of [BFCL](https://github.com/ShishirPatil/gorilla) 4, from its package, replayed "
        "from their answers through Hermes' loop, argument check, policy and approvals. The same calls are made directly on a "
        "second set of the mock services; results and states must be equal after each turn.",
        ("tests/integration/test_tools_calls.py", "tests/unit/core/test_turn.py"),
    ),
    "destruction": PromisePart(
        "Files outside the workspace",
        "A command in the sandbox changes nothing outside the workspace and ends no process there, however it is written.",
        "Destructive commands, really run by the terminal tool against decoys, everything inside a root made for it. Approvals "
        "are left out: only the sandbox holds. As a control, each command also runs without the sandbox.",
        (
            "tests/integration/sandbox/test_oracles.py",
            "tests/integration/sandbox/test_ways_around.py",
            "tests/unit/tools/policy/test_corpus.py",
        ),
    ),
    "kills": PromisePart(
        "Acknowledged messages",
        "What was acknowledged is on disk: a kill at any moment loses nothing and doubles nothing.",
        "Three processes write to one log and are killed with SIGKILL at random moments; each is followed by another one that "
        "opens the same log. At the end every acknowledged message must be in its place, once.",
        (
            "tests/integration/test_store_durability.py",
            "tests/integration/gateway/test_killed.py",
        ),
    ),
    "caps": PromisePart(
        "Spending caps",
        "A cap holds for everything together, also if several sessions ask at the same moment.",
        "Sessions with one home and a daily cap ask at the same moment, twice; together they would need twice the cap.",
        (
            "tests/integration/test_agent.py",
            "tests/integration/machines/test_caps_and_schedules.py",
        ),
    ),
    "restarts": PromisePart(
        "Work across restarts",
        "Work that was under way when its process was killed is taken over: none is lost, none runs twice at once.",
        "The processes that run the cards of a board, or programs that they started, are killed at random moments and started "
        "again.",
        ("tests/integration/boards/test_kills.py", "tests/e2e/test_ask_killed.py"),
    ),
    "growth": PromisePart(
        "Memory and file handles",
        "A gateway that runs for long doesn't grow with every message.",
        "One gateway answers messages in many chats, two in each, with a scripted model. Its memory and its open files are "
        "counted after each quarter of them.",
        ("tests/unit/primitives/test_recent.py",),
    ),
    "cost": PromisePart(
        "Costs",
        "Hermes sends little besides what you say.",
        "The installed program with a scripted model: so these are the costs of Hermes, without a model's detours. "
        "Other agents that are on PATH (codex, opencode, pi) are asked the same in the same run.",
        ("tests/integration/test_prompt_cache.py",),
    ),
}

_HEAD = """# Proofs

What Hermes promises, the tests that try to break it, and what came out last. This page is written by
`make bench BENCH=proofs`; run it yourself to get the figures of your machine (`ARGS=--full` for all cases and large numbers).
A control shows that a trial can fail.
"""


def render(parts: Mapping[str, PartFigures]) -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(name, parts.get(name)) for name in PARTS)])


def write_page(parts: Mapping[str, PartFigures]) -> None:
    """Writes the page into the documentation."""
    PAGE.write_text(render(parts), encoding="utf-8")


def _section(name: str, figures: PartFigures | None) -> str:
    part = PARTS[name]
    tests = ", ".join(f"`{path}`" for path in part.tests)
    lines = [f"## {part.title}", "", f"**{part.promise}**", "", part.how, ""]
    lines += [f"Tests: {tests}", ""]
    if figures is None:
        return "\n".join([*lines, "Not measured yet.", ""])
    lines += ["| Figure | Result | Cases | Promise |", "|---|---:|---:|---|"]
    kept = {True: "kept", False: "**broken**", None: ""}
    lines += [
        f"| {one.name} | {one.value} | {one.cases:,} | {kept[one.met]} |"
        for one in figures.figures
    ]
    return "\n".join(
        [*lines, "", f"Measured on {figures.date}: {figures.machine}.", ""]
    )
