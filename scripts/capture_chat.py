"""Draw docs/images/chat.svg: a real chat of the installed `hermes` at a pseudo-terminal, with a scripted model.

Run it after the look of the chat has changed: `python scripts/capture_chat.py`. What the terminal showed is taken from
the bytes that it wrote, so that the picture can't show anything the program does not.
"""

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hermes.testing.installed import InstalledHermes
from hermes.testing.model_server import ModelServer
from hermes.testing.scripted_responses import ScriptedResponse, ServedCall

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "chat.svg"
COLUMNS, ROWS = 84, 60
ANSWER = """\
The bug was in `total`: it **skipped the last item**.

| check | result |
|---|---|
| `total([1, 2, 3])` | 6 |
| empty list | 0 |

```python
def total(items: list[int]) -> int:
    return sum(items)  # all of them
```
"""
BEFORE = "def total(items):\n    return sum(items[:-1])\n"


def script() -> list[ScriptedResponse]:
    """A small repair: read, change, run, tell."""
    edit = {"path": "shop.py", "old_text": "sum(items[:-1])", "new_text": "sum(items)"}
    run = {"command": "python3 -c 'import shop; print(shop.total([1, 2, 3]))'"}
    return [
        ScriptedResponse(
            text="Let me look.",
            calls=(ServedCall("read_file", '{"path": "shop.py"}'),),
            input_tokens=3100,
        ),
        ScriptedResponse(
            calls=(ServedCall("edit_file", json.dumps(edit)),), input_tokens=3300
        ),
        ScriptedResponse(
            calls=(ServedCall("terminal", json.dumps(run)),), input_tokens=3500
        ),
        ScriptedResponse(text=ANSWER, input_tokens=3700, output_tokens=160),
    ]


async def chat(folder: Path) -> str:
    """What the terminal shows at the end, with its colours."""
    async with ModelServer(*script()) as server:
        hermes = InstalledHermes(folder, server.url)
        (hermes.work / "shop.py").write_text(BEFORE)
        async with hermes.terminal(
            "--model", "gpt-5", size=(COLUMNS, ROWS)
        ) as terminal:
            await terminal.until(lambda shown: "\n›" in shown)
            terminal.type("why is the total in shop.py too small?\r")
            await terminal.until(lambda shown: "a number or a key" in shown)
            terminal.type("y")
            await terminal.until(
                lambda shown: " tokens" in shown.rpartition("all of them")[2]
            )
            return terminal.coloured


def main() -> int:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "shop"
        text = asyncio.run(chat(folder)).replace(str(folder / "work"), "~/shop")
    console = Console(
        record=True,
        width=COLUMNS,
        file=tempfile.TemporaryFile("w"),  # noqa: SIM115
        force_terminal=True,
    )
    console.print(Text.from_ansi(text), soft_wrap=True)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    drawn = re.sub(
        r"@font-face \{.*?\}", "", console.export_svg(title="hermes"), flags=re.DOTALL
    )  # nothing is fetched
    PICTURE.write_text(re.sub(r"[ \t]+\n", "\n", drawn), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(PICTURE.parent.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
