"""What a person is told before a small local model speaks."""


def banner(name: str) -> str:
    """Who speaks, what it is good for, what it is bad at, and how to get something better."""
    return (
        f"{name} is speaking: a small model on this machine, for simple file tasks. Nothing leaves the machine.\n"
        "It is often wrong on facts and advice, and may claim things it did not do: check what matters.\n"
        "A larger model in one line: hermes setup"
    )
