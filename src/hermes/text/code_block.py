"""A text that Markdown leaves as it is."""


def code_block(text: str) -> str:
    """Returns a code block in Markdown. The text can contain any backticks."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
