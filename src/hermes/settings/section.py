"""What every section of the settings is made of."""

from msgspec import Struct

AMOUNT = r"^$|^\$\s*\d+(\.\d+)?$|^\d+(\.\d+)?\s*([kKmM]?\s*(tokens?)?|usd|dollars?)$"


class Section(Struct, frozen=True, forbid_unknown_fields=True):
    """What every section is: frozen, and closed to keys that don't exist."""
