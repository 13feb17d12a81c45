"""How this copy of Hermes was installed, and the command that adds a part to exactly this copy.

The command names this copy's own folder, or a distribution that is installed already, so that pip asks an index
only for the part's own packages, and never for another product of the same name.
"""

import sys
from pathlib import Path

DISTRIBUTION = "hermes-companion"


def reinstall_command(package: str) -> str:
    """The command that reinstalls one of our dependencies."""
    return _pip("install", "--upgrade", "--force-reinstall", "--no-deps", package)


def is_from_index() -> bool:
    """Whether a package index delivered this copy. Only then is our name there known to be ours."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return False
    return installed.read_text("direct_url.json") is None and checkout_folder() is None


def checkout_folder() -> Path | None:
    """The folder of the source code that this copy runs from; None if it does not."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted = distribution(DISTRIBUTION).read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    return _checkout(noted or "")


def install_command(extra: str) -> str:
    """The command that installs an extra; empty if it is unknown how this copy was installed."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        installed = None
    noted = installed.read_text("direct_url.json") if installed is not None else None
    checkout = _checkout(noted or "")
    if checkout is not None:
        return _pip("install", "-e", f"{checkout}[{extra}]")
    if installed is None:
        return ""
    part = f"{DISTRIBUTION}[{extra}]=={installed.version}"  # what is installed; no other version is looked for
    if (Path(sys.prefix) / "pipx_metadata.json").is_file():
        environment = Path(
            sys.prefix
        ).name  # pipx calls it by the product's name and the user's suffix
        return _joined("pipx", "runpip", environment, "install", part)
    return _pip("install", part)


def _pip(*arguments: str) -> str:
    """pip, for the Python that runs us. uv makes environments without pip, and installs into them from outside."""
    from importlib.util import find_spec

    if find_spec("pip") is None:
        return _joined(
            "uv", "pip", *arguments[:1], "--python", sys.executable, *arguments[1:]
        )
    return _joined(sys.executable, "-m", "pip", *arguments)


def _joined(*words: str) -> str:
    import shlex

    return shlex.join(words)


def _checkout(origin: str) -> Path | None:
    """The folder of the source code, when this copy runs from one. `origin` is what pip noted when it installed."""
    import json
    from urllib.parse import unquote, urlsplit

    noted = json.loads(origin) if origin else {}
    folder = Path(__file__).resolve().parents[2]
    if noted.get("dir_info", {}).get("editable"):
        folder = Path(unquote(urlsplit(noted["url"]).path))
    try:
        ours = f'name = "{DISTRIBUTION}"' in (folder / "pyproject.toml").read_text(
            encoding="utf-8"
        )
    except OSError:
        return None
    return folder if ours else None
