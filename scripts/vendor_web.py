"""Fetch the libraries of the dashboard's page, and write them into the tree: `python scripts/vendor_web.py`.

For developers, after changing a version below. It needs `npm` to fetch packages, but runs none of their code. The page
itself needs neither: it loads these files as they are. `vendor.lock.json` has npm's hash of each package and our hash
of each file; a test compares them.
"""

import base64
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "src" / "hermes" / "surfaces" / "dashboard" / "static" / "vendor"
TEST_DATA = ROOT / "tests" / "data" / "vendor"
LOCK = "vendor.lock.json"
LANGUAGES = (
    "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "ini",
    "java", "javascript", "json", "kotlin", "lua", "makefile", "markdown", "nix", "php",
    "powershell", "python", "ruby", "rust", "shell", "sql", "swift", "typescript", "xml",
    "yaml",
)  # fmt: skip


class Package(NamedTuple):
    """An npm package: the files that are taken from it, and their new names."""

    name: str
    version: str
    files: dict[str, str]
    folder: Path = VENDOR
    requires: dict[str, str] | None = None
    """For CommonJS modules: the addresses of the modules they require."""

    @property
    def place(self) -> str:
        """Its folder in the tree."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}"


_REACT = "19.3.1"
_SCHEDULER = "0.28.0"

PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        {
            "dist/preact.mjs": "preact.js",
            "hooks/dist/hooks.mjs": "hooks.js",
            "LICENSE": "LICENSE",
        },
    ),
    Package("htm", "3.1.1", {"dist/htm.mjs": "htm.js", "LICENSE": "LICENSE"}),
    Package(
        "marked", "18.2.0", {"lib/marked.esm.js": "marked.js", "LICENSE": "LICENSE"}
    ),
    Package(
        "@highlightjs/cdn-assets",
        "11.12.0",
        {
            "es/core.min.js": "core.js",
            **{
                f"es/languages/{name}.min.js": f"languages/{name}.js"
                for name in LANGUAGES
            },
            "LICENSE": "LICENSE",
        },
    ),
    Package(
        "temml",
        "0.13.5",
        {
            "dist/temml.min.js": "temml.js",
            "dist/Temml-Local.css": "temml.css",
            "dist/Temml.woff2": "Temml.woff2",
            "LICENSE": "LICENSE",
        },
    ),
    # The build without mind maps and architecture diagrams, at half the size of `mermaid`.
    Package(
        "@mermaid-js/tiny",
        "12.0.0",
        {"dist/mermaid.tiny.js": "mermaid.js", "LICENSE": "LICENSE"},
    ),
    Package(
        "@xterm/xterm",
        "6.0.0",
        {
            "lib/xterm.mjs": "xterm.js",
            "css/xterm.css": "xterm.css",
            "LICENSE": "LICENSE",
        },
    ),
    Package(
        "@xterm/addon-fit",
        "0.11.0",
        {"lib/addon-fit.mjs": "addon-fit.js", "LICENSE": "LICENSE"},
    ),
    Package(
        "@xterm/addon-unicode-graphemes",
        "0.4.0",
        {
            "lib/addon-unicode-graphemes.mjs": "addon-unicode-graphemes.js",
            "LICENSE": "LICENSE",
        },
    ),
    Package(
        "react",
        _REACT,
        {"cjs/react.production.js": "react.js", "LICENSE": "LICENSE"},
        requires={},
    ),
    Package(
        "scheduler",
        _SCHEDULER,
        {"cjs/scheduler.production.js": "scheduler.js", "LICENSE": "LICENSE"},
        requires={},
    ),
    Package(
        "react-dom",
        _REACT,
        {
            "cjs/react-dom.production.js": "react-dom.js",
            "cjs/react-dom-client.production.js": "client.js",
            "LICENSE": "LICENSE",
        },
        requires={
            "react": f"../react-{_REACT}/react.js",
            "react-dom": "./react-dom.js",
            "scheduler": f"../scheduler-{_SCHEDULER}/scheduler.js",
        },
    ),
    Package(
        "axe-core",
        "4.14.0",
        {
            "axe.min.js": "axe.min.js",
            "LICENSE": "LICENSE",
            "LICENSE-3RD-PARTY.txt": "LICENSE-3RD-PARTY.txt",
        },
        TEST_DATA,
    ),
)
_BARE = (b'from"preact"', b'from"./preact.js"')
"""Browsers load modules only by address, so the one import by name is replaced by an address."""
_EXPORTS = {"temml.js": b"\nexport default temml;\n"}
"""The line that turns a script that only defines a variable into a module."""


def fetch(package: Package) -> tuple[bytes, str]:
    """Fetch a package. Returns its content and npm's hash of it, after comparing the two."""
    with tempfile.TemporaryDirectory() as folder:
        told = subprocess.run(
            ["npm", "pack", "--json", "--ignore-scripts", f"{package.name}@{package.version}"],
            cwd=folder, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        answer = json.loads(told)
        (facts,) = answer if isinstance(answer, list) else answer.values()
        (file,) = Path(folder).glob("*.tgz")
        content = file.read_bytes()
    kind, _, expected = facts["integrity"].partition("-")
    if (
        kind != "sha512"
        or base64.b64encode(hashlib.sha512(content).digest()).decode() != expected
    ):
        raise SystemExit(f"{package.name}: what came is not what npm's index names")
    return content, facts["integrity"]


def unpack(package: Package, content: bytes) -> dict[str, str]:
    """Write the wanted files. Returns the hash of each, by its name in the tree."""
    hashes: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for source, target in sorted(package.files.items(), key=lambda pair: pair[1]):
            member = archive.extractfile(f"package/{source}")
            if member is None:
                raise SystemExit(f"{package.name} has no file {source}")
            data = _without_map(member.read()).replace(*_BARE)
            data += _EXPORTS.get(target, b"")
            if package.requires is not None and target.endswith(".js"):
                data = _as_module(data.decode(), package.requires).encode()
            path = package.folder / package.place / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            hashes[f"{package.place}/{target}"] = hashlib.sha256(data).hexdigest()
    return hashes


def _without_map(data: bytes) -> bytes:
    """Remove the reference to a source map, which is not included."""
    return b"".join(
        line
        for line in data.splitlines(keepends=True)
        if not line.startswith(b"//# sourceMappingURL=")
    )


def _as_module(source: str, addresses: dict[str, str]) -> str:
    """Convert a CommonJS module to one that a browser can import. Its exports become the default export."""
    needed = {
        name: address
        for name, address in addresses.items()
        if f'require("{name}")' in source
    }
    imports = "".join(
        f'import required{number} from "{address}";\n'
        for number, address in enumerate(needed.values())
    )
    table = ", ".join(f'"{name}": required{n}' for n, name in enumerate(needed))
    return (
        f"{imports}const required = {{ {table} }};\nconst require = (name) => required[name];\n"
        f"const exports = {{}};\n{source}\nexport default exports;\n"
    )


def main() -> None:
    """Replace both folders with the files in the table."""
    for folder in (VENDOR, TEST_DATA):
        shutil.rmtree(folder, ignore_errors=True)
        packages: list[dict[str, object]] = []
        for package in PACKAGES:
            if package.folder == folder:
                content, integrity = fetch(package)
                files = unpack(package, content)
                packages.append(
                    {
                        "name": package.name,
                        "version": package.version,
                        "integrity": integrity,
                        "files": files,
                    }
                )
        (folder / LOCK).write_text(json.dumps({"packages": packages}, indent=1) + "\n")


if __name__ == "__main__":
    main()
