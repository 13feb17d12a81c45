"""`hermes profile` in a shell: made, cloned, exported, imported and removed."""

from pathlib import Path

from hermes.testing.installed import InstalledHermes


async def test_a_profile_is_made_cloned_exported_imported_and_removed(
    tmp_path: Path,
) -> None:
    hermes = InstalledHermes(tmp_path)

    async def told(*words: str, code: int = 0) -> str:
        done = await hermes.run(*words)
        assert done.code == code, (words, done.out, done.err)
        return done.out + done.err

    await told("profile", "create", "work")
    await told("--profile", "work", "config", "set", "display.language", "fr")
    assert "It has no keys" in await told("profile", "clone", "work", "copy")
    await told("profile", "export", "copy", "copy.tar.gz")
    await told("profile", "remove", "copy", "--yes")
    assert "no profile 'copy'" in await told("--profile", "copy", "status", code=1)
    await told("profile", "import", "copy.tar.gz", "back", "--yes")
    kept = await told("--profile", "back", "config", "get", "display.language")
    assert "fr" in kept
    names = [one.split()[0] for one in (await told("profile", "list")).splitlines()]
    assert {"back", "work"} <= set(names)
    assert "copy" not in names
