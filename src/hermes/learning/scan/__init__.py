"""Looks for text that wants to be an instruction, and for code that nobody should run, before either is kept."""

from hermes.learning.scan.code import SkillFinding, scan_files
from hermes.learning.scan.text import scan

__all__ = ["SkillFinding", "scan", "scan_files"]
