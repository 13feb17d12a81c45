"""Which plugins there are and which are enabled. Files are the subject here, so there are some."""

from pathlib import Path

import pytest

from hermes.errors import HermesError, NotFound
from hermes.plugins import PluginRegistry
from hermes.plugins.plugin_registry import files_of, hash_of
from hermes.settings import Home


def _make(home: Home, name: str, manifest: str | None = None) -> Path:
    folder = home.plugins / name
    (folder / "dashboard").mkdir(parents=True)
    (folder / "dashboard" / "manifest.json").write_text(
        manifest or f'{{"name": "{name}"}}'
    )
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_a_plugin_is_off_until_it_is_enabled_and_again_when_it_changes(
    home: Home,
) -> None:
    folder, catalogue = _make(home, "one"), PluginRegistry(home)
    assert catalogue.find("one").state == "off"
    assert catalogue.enable("one").state == "enabled"
    (folder / "extra.txt").write_text("x")
    assert catalogue.find("one").state == "changed"
    (folder / "extra.txt").unlink()
    assert catalogue.find("one").state == "enabled"
    assert catalogue.disable("one")
    assert not catalogue.disable("one")
    assert catalogue.find("one").state == "off"


def test_what_was_shown_is_what_is_enabled(home: Home) -> None:
    folder, catalogue = _make(home, "one"), PluginRegistry(home)
    shown = catalogue.find("one").hash
    (folder / "late.py").write_text("evil")
    with pytest.raises(HermesError, match="changed in the meantime"):
        catalogue.enable("one", shown)
    assert catalogue.find("one").state == "off"


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("{", "can't be used"),
        ('{"name": "other"}', "calls it 'other'"),
        ('{"name": "one", "entry": "../../x"}', "not a file in its dashboard folder"),
        ('{"name": "one", "api": "none.py"}', "not a file in its dashboard folder"),
        ('{"label": 7}', "can't be used"),
        (" " * 70_000, "larger than 64 KiB"),
    ],
)
def test_what_is_wrong_with_one_is_said_and_it_can_t_be_enabled(
    home: Home, manifest: str, problem: str
) -> None:
    _make(home, "one", manifest)
    catalogue = PluginRegistry(home)
    assert problem in catalogue.find("one").problem
    with pytest.raises(HermesError, match="can't be used"):
        catalogue.enable("one")


def test_links_are_refused_because_what_they_lead_to_changes_unseen(
    home: Home, tmp_path: Path
) -> None:
    folder = _make(home, "one")
    (tmp_path / "elsewhere.py").write_text("x")
    (folder / "link.py").symlink_to(tmp_path / "elsewhere.py")
    assert "not a plain file" in PluginRegistry(home).find("one").problem
    (folder / "link.py").unlink()
    (folder / "inside").symlink_to(tmp_path)
    assert "not a plain file" in PluginRegistry(home).find("one").problem


def test_a_hash_tells_names_from_contents(tmp_path: Path) -> None:
    marks: set[str] = set()
    for number, files in enumerate(
        (
            {"a": "bc"},
            {"ab": "c"},
            {"a": "b", "c": ""},
            {"a": "", "bc": ""},
            {"d/a": "bc"},
        )
    ):
        folder = tmp_path / str(number)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        marks.add(hash_of(folder))
    assert len(marks) == 5


def test_the_user_s_own_goes_before_a_bundled_one(home: Home, tmp_path: Path) -> None:
    bundled = Home(tmp_path / "bundled")
    _make(bundled, "one")
    _make(bundled, "two")
    mine = _make(home, "one")
    found = {
        plugin.name: plugin.folder
        for plugin in PluginRegistry(home, bundled.plugins).every()
    }
    assert found == {"one": mine, "two": bundled.plugins / "two"}


def test_one_that_came_with_hermes_is_off_until_enabled_and_stays_so_when_it_changes(
    home: Home, tmp_path: Path
) -> None:
    bundled = Home(tmp_path / "bundled")
    folder, catalogue = _make(bundled, "one"), PluginRegistry(home, bundled.plugins)
    assert (catalogue.find("one").state, catalogue.find("one").bundled) == ("off", True)
    assert catalogue.enable("one").state == "enabled"
    (folder / "new.py").write_text("of a newer Hermes")
    assert catalogue.find("one").state == "enabled"
    (_make(home, "one") / "mine.py").write_text("of somebody else")
    assert (catalogue.find("one").state, catalogue.find("one").bundled) == (
        "changed",
        False,
    )


def test_what_python_makes_of_the_orb_is_no_change_of_it(home: Home) -> None:
    orb = PluginRegistry(home).find("orb")
    assert orb.bundled
    assert not orb.problem
    assert not [
        path
        for path in files_of(orb.folder)
        if path.suffix not in {".py", ".js", ".css", ".json", ".svg"}
    ]


def test_one_that_is_not_there_is_said_so(home: Home) -> None:
    with pytest.raises(NotFound, match="no plugin 'x'"):
        PluginRegistry(home).enable("x")


def test_a_package_may_bring_one_and_is_not_imported(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "brought" / "dashboard").mkdir(parents=True)
    (site / "brought" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (site / "brought" / "dashboard" / "manifest.json").write_text('{"name": "brought"}')
    (site / "brought-1.0.dist-info").mkdir()
    (site / "brought-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n"
    )
    (site / "brought-1.0.dist-info" / "entry_points.txt").write_text(
        "[hermes.plugins]\nbrought = brought\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert PluginRegistry(home).find("brought").state == "off"


def test_two_plugins_of_one_name_are_both_broken(home: Home) -> None:
    manifest = '{"name": "one", "tab": {"path": "/one"}, "entry": "x.js"}'
    for name in ("one", "another"):
        folder = _make(home, name, manifest)
        (folder / "dashboard" / "x.js").touch()
        catalogue = PluginRegistry(home)
        if name == "one":
            assert catalogue.enable("one").state == "enabled"
    found = catalogue.find("one")
    assert found.state == "broken"
    assert "(another, one): keep one" in found.problem
    with pytest.raises(HermesError, match="can't be used"):
        catalogue.enable("one")
