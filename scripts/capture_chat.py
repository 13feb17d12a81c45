"""Draw docs/images/chat.svg: a real chat with the installed `hermes` on a pseudo-terminal, with a scripted model.

The picture is animated: each moment of the chat is a frame, shown for a few seconds. Run this after the look of the
chat has changed: `python scripts/capture_chat.py`. The frames are made from the bytes that the program wrote, so the
picture can't show anything that the program does not.
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
FRAME_S = 3
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
    """A small repair: read a file, change it, run the test, report."""
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


async def chat(folder: Path) -> list[str]:
    """Run the chat. Returns what the terminal shows at each moment, in colour."""
    async with ModelServer(*script()) as server:
        hermes = InstalledHermes(folder, server.url)
        (hermes.work / "shop.py").write_text(BEFORE)
        async with hermes.terminal(
            "--model", "gpt-5", size=(COLUMNS, ROWS)
        ) as terminal:
            await terminal.sees("Ctrl-D quits ›")
            terminal.type("why is the total in shop.py too small?")
            await terminal.sees("too small?")
            typed = terminal.coloured
            terminal.type("\r")
            await terminal.until(lambda shown: "Esc stops" in shown)
            asked = terminal.coloured
            terminal.type("1")
            await terminal.until(
                lambda shown: "tokens ·" in shown.rpartition("all of them")[2]
            )
            return [typed, asked, terminal.coloured]


def drawn(screens: list[str]) -> str:
    """Draw all screens as one animated picture."""
    lines = max(screen.count("\n") for screen in screens)
    frames = [_frame(screen, lines, f"moment{at}") for at, screen in enumerate(screens)]
    view = re.search(r'viewBox="[^"]*"', frames[0])
    share = 100 / len(frames)
    styles = "".join(
        f".moment{at}{{animation:moment{at} {FRAME_S * len(frames)}s infinite step-end}}"
        f"@keyframes moment{at}{{0%{{opacity:{int(at == 0)}}}{at * share:.2f}%{{opacity:1}}"
        + (f"{(at + 1) * share:.2f}%{{opacity:0}}" if at + 1 < len(frames) else "")
        + "}"
        for at in range(len(frames))
    )
    groups = "".join(
        f'<g class="moment{at}">{frame}</g>' for at, frame in enumerate(frames)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" {view[0] if view else ""}><style>{styles}</style>{groups}</svg>\n'


def _frame(screen: str, lines: int, name: str) -> str:
    console = Console(
        record=True,
        width=COLUMNS,
        file=tempfile.TemporaryFile("w"),  # noqa: SIM115
        force_terminal=True,
    )
    padded = screen + "\n" * (lines - screen.count("\n"))
    console.print(Text.from_ansi(padded), soft_wrap=True)
    picture = console.export_svg(title="hermes", unique_id=name)
    # Without web fonts, so that the picture fetches nothing.
    picture = re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    return re.sub(r"[ \t]+\n", "\n", picture)


def main() -> int:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "shop"
        screens = [
            screen.replace(str(folder / "work"), "~/shop")
            for screen in asyncio.run(chat(folder))
        ]
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(drawn(screens), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(PICTURE.parent.parent.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
