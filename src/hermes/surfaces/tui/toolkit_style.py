"""Translates SGR parameters into prompt_toolkit's names of styles."""

from functools import lru_cache

_ATTRIBUTES = {
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    "7": "reverse",
    "9": "strike",
}
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")


@lru_cache(maxsize=256)
def toolkit_style(sgr: str) -> str:
    """Returns the style for SGR parameters such as `1;36` or `48;5;22`."""
    names: list[str] = []
    codes = iter(sgr.split(";"))
    for code in codes:
        if code in _ATTRIBUTES:
            names.append(_ATTRIBUTES[code])
        elif code in {"38", "48"}:
            next(codes, "")  # 5: one of 256 colours follows
            names.append(
                f"{'fg' if code == '38' else 'bg'}:{_hex(int(next(codes, 0)))}"
            )
        elif code and code[:-1] in {"3", "9"}:
            bright = "bright" if code[0] == "9" else ""
            names.append(f"ansi{bright}{_COLOURS[int(code[-1])]}")
    return " ".join(names)


def _hex(number: int) -> str:
    """Returns one of the 240 fixed colours as `#rrggbb`."""
    if number >= 232:
        return f"#{8 + 10 * (number - 232):02x}" + f"{8 + 10 * (number - 232):02x}" * 2
    steps = (0, 95, 135, 175, 215, 255)
    cube = number - 16
    red, green, blue = steps[cube // 36], steps[cube // 6 % 6], steps[cube % 6]
    return f"#{red:02x}{green:02x}{blue:02x}"
