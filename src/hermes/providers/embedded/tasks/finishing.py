"""Finish a task: several steps, judged by what is in the folder and by the last words."""

import json

from hermes.providers.embedded.tasks.task import (
    Task,
    TaskOutcome,
    all_of,
    holds,
    lacks,
    lines_are,
    never_says,
    says,
    unchanged,
)

_FRUIT = {"fruit.csv": "name,count\napple,4\nkiwi,11\nmelon,2\n"}
_SERVER = {"server.conf": "host = localhost\nport = 8080\nlog = info\n"}
_MODULE = {
    "geometry.py": "def area(w, h):\n    return w + h\n\n\ndef edge(w):\n    return 4 * w\n"
}
_TREE = {
    "docs/intro.md": "Welcome to the garden.\n",
    "docs/setup.md": "Install the pump first.\n",
    "src/main.py": "print('garden')\n",
}


def _debug_is_on(outcome: TaskOutcome) -> str:
    try:
        return (
            ""
            if json.loads(outcome.text("settings.json")) == {"debug": True, "level": 3}
            else "wrong settings"
        )
    except ValueError:
        return "settings.json is not JSON any more"


def _folder_made(outcome: TaskOutcome) -> str:
    return "" if (outcome.folder / "archive").is_dir() else "there is no folder archive"


def _renamed(outcome: TaskOutcome) -> str:
    there, gone = (
        (outcome.folder / "final.txt").is_file(),
        not (outcome.folder / "draft.txt").exists(),
    )
    return "" if there and gone else "draft.txt was not renamed to final.txt"


FINISHING: tuple[Task, ...] = (
    Task(
        id="finish-create",
        kind="finish",
        request="Create greeting.txt containing exactly: Hello, world",
        check=lines_are("greeting.txt", "Hello, world"),
    ),
    Task(
        id="finish-script",
        kind="finish",
        request="Write a Python script squares.py that prints the squares of the numbers 1 to 5.",
        check=all_of(
            holds("squares.py", "print"),
            holds("squares.py", "range"),
            lacks("squares.py", "```"),
        ),
    ),
    Task(
        id="finish-append",
        kind="finish",
        request="Add the line 'cherry' at the end of basket.txt.",
        files={"basket.txt": "apple\nbanana\n"},
        check=lines_are("basket.txt", "apple", "banana", "cherry"),
    ),
    Task(
        id="finish-config",
        kind="finish",
        request="Change the port in server.conf to 9000.",
        files=_SERVER,
        check=lines_are("server.conf", "host = localhost", "port = 9000", "log = info"),
    ),
    Task(
        id="finish-typo",
        kind="finish",
        request="Fix the spelling mistake 'recieve' in letter.txt: it should be 'receive'.",
        files={"letter.txt": "Dear Tom,\nDid you recieve my parcel?\nBye\n"},
        check=lines_are("letter.txt", "Dear Tom,", "Did you receive my parcel?", "Bye"),
    ),
    Task(
        id="finish-lookup",
        kind="finish",
        request="How many kiwis are there according to fruit.csv?",
        files=_FRUIT,
        check=all_of(says(r"\b(11|eleven)\b"), unchanged(_FRUIT)),
    ),
    Task(
        id="finish-count-files",
        kind="finish",
        request="How many files are in the docs folder, and what are their names?",
        files=_TREE,
        check=all_of(says("intro"), says("setup"), unchanged(_TREE)),
    ),
    Task(
        id="finish-search",
        kind="finish",
        request="Which file mentions the pump?",
        files=_TREE,
        check=all_of(says(r"setup\.md"), unchanged(_TREE)),
    ),
    Task(
        id="finish-bug",
        kind="finish",
        request="The function area in geometry.py adds instead of multiplying. Fix it.",
        files=_MODULE,
        check=all_of(
            holds("geometry.py", "return w * h"),
            lacks("geometry.py", "w + h"),
            holds("geometry.py", "4 * w"),
        ),
    ),
    Task(
        id="finish-rename-function",
        kind="finish",
        request="Rename the function edge to perimeter in geometry.py.",
        files=_MODULE,
        check=all_of(
            holds("geometry.py", "def perimeter(w):"),
            lacks("geometry.py", "edge"),
            holds("geometry.py", "def area"),
        ),
    ),
    Task(
        id="finish-json",
        kind="finish",
        request="Turn debug on in settings.json.",
        files={"settings.json": '{\n  "debug": false,\n  "level": 3\n}\n'},
        check=_debug_is_on,
    ),
    Task(
        id="finish-missing",
        kind="finish",
        request="What does plan.txt say?",
        files=_FRUIT,
        check=all_of(
            says(
                r"no file|not exist|doesn't exist|not found|no such|couldn't find|can't find|missing"
            ),
            unchanged(_FRUIT),
        ),
    ),
    Task(
        id="finish-version",
        kind="finish",
        request="Bump the version in project.toml from 1.2.3 to 1.3.0",
        files={"project.toml": '[project]\nname = "kite"\nversion = "1.2.3"\n'},
        check=lines_are(
            "project.toml", "[project]", 'name = "kite"', 'version = "1.3.0"'
        ),
    ),
    Task(
        id="finish-requirement",
        kind="finish",
        request="Add requests to requirements.txt, keep what is there.",
        files={"requirements.txt": "flask\nnumpy\n"},
        check=all_of(
            holds("requirements.txt", "flask\n"),
            holds("requirements.txt", "numpy"),
            holds("requirements.txt", "requests"),
        ),
    ),
    Task(
        id="finish-copy",
        kind="finish",
        request="Read version.txt and write the same version number into a new file release.txt.",
        files={"version.txt": "4.7.1\n"},
        check=all_of(lines_are("version.txt", "4.7.1"), holds("release.txt", "4.7.1")),
    ),
    Task(
        id="finish-folder",
        kind="finish",
        request="Make a new folder called archive.",
        files=_FRUIT,
        check=_folder_made,
    ),
    Task(
        id="finish-move",
        kind="finish",
        request="Rename the file draft.txt to final.txt.",
        files={"draft.txt": "chapter one\n"},
        check=_renamed,
    ),
    Task(
        id="finish-keep",
        kind="finish",
        request="Write the line 'pay rent' into tasks.txt.",
        files={"tasks.txt": "wash car\nfeed cat\n"},
        check=all_of(
            holds("tasks.txt", "wash car"),
            holds("tasks.txt", "feed cat"),
            holds("tasks.txt", "pay rent"),
        ),
    ),
    Task(
        id="finish-summary",
        kind="finish",
        request="Summarise story.txt in one sentence.",
        files={
            "story.txt": "A fox found a red kite. She flew it over the lake until the wind stopped.\n"
        },
        check=all_of(says("fox"), says("kite"), never_says(r"^(read|write) ")),
    ),
)
