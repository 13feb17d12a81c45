"""Numbers as people read them."""


def count(number: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def short_number(number: int) -> str:
    """`950`, `12k`, `1M`, `1.5M`."""
    if number < 1_000:
        return str(number)
    if number < 999_500:
        return f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}".removesuffix(".0") + "M"
