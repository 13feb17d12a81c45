"""`hermes plugins`: which plugins there are, and enabling or disabling one. Nothing of a plugin runs before that."""

import argparse

import msgspec

from hermes.plugins import Plugin, PluginRegistry
from hermes.settings.load import find_home
from hermes.surfaces.cli.parser import Parser, add_action
from hermes.surfaces.terminal.text import one_line, stdout_screen, table

_STATES = {
    "off": "off",
    "enabled": "enabled",
    "changed": "changed since you enabled it: off until you enable it again",
    "broken": "can't be used",
}


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", parser_class=Parser
    )
    every = add_action(actions, "list", "list the plugins; none of them is run")
    every.add_argument("--json", action="store_true", help="print JSON")
    enable = add_action(actions, "enable", "let a plugin run, exactly as it is now")
    enable.add_argument("name", metavar="NAME", help="the plugin")
    disable = add_action(actions, "disable", "keep a plugin from running")
    disable.add_argument("name", metavar="NAME", help="the plugin")
    parser.epilog = "A plugin is a folder in `plugins/` of the Hermes home. It runs inside the dashboard, as you."


def run(args: argparse.Namespace) -> int:
    catalogue = PluginRegistry(find_home())
    match args.action:
        case "enable":
            plugin = catalogue.enable(args.name)
            print(
                f"{plugin.name} is enabled ({plugin.hash[:12]}). A dashboard that runs loads it when it is shown next."
            )
        case "disable":
            was = catalogue.disable(args.name)
            print(
                f"{args.name} is disabled." if was else f"{args.name} was not enabled."
            )
        case _:
            _list(catalogue.every(), as_json=getattr(args, "json", False))
    return 0


def _list(plugins: list[Plugin], *, as_json: bool) -> None:
    if as_json:
        rows = [msgspec.to_builtins(plugin, enc_hook=str) for plugin in plugins]
        print(
            msgspec.json.format(
                msgspec.json.encode({"plugins": rows}), indent=2
            ).decode()
        )
        return
    if not plugins:
        print(
            "There are no plugins. One is a folder in `plugins/` of the Hermes home that holds dashboard/manifest.json."
        )
        return
    rows = [("PLUGIN", "VERSION", "STATE"), *map(_row, plugins)]
    screen = stdout_screen()
    for number, line in enumerate(table(rows)):
        print(line if number else screen.style.bold(line))


def _row(plugin: Plugin) -> tuple[str, str, str]:
    version = plugin.manifest.version if plugin.manifest else ""
    state = _STATES[plugin.state] + (f": {plugin.problem}" if plugin.problem else "")
    return one_line(plugin.name), one_line(version), one_line(state)
