"""Starts programs and ends everything they started.

`own_python` and `helper_programs` say what to start: our own Python, and helpers from outside every workspace. Programs
on pipes run as a `PipedChild` under `leash`; commands and terminals, which Hermes starts directly, are found by
`process_tree` and ended by `orphan_reaper` if Hermes is killed.
"""
