"""Shared code of the terminal surfaces: text layout, tool calls, questions, signals and opening a
session.
"""
