"""Hermes in editors: the Agent Client Protocol on stdin and stdout.

An editor starts `hermes acp` and talks to `EditorAgent`. Sessions, approvals and the feed are the same as everywhere
else, so a session that began in an editor can continue in a terminal or a browser.
"""
