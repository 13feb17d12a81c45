"""Scans text for injected instructions, and code for dangers, before either is saved."""

from hermes.learning.scan.code import SkillFinding, scan_files
from hermes.learning.scan.phrases import scan

__all__ = ["SkillFinding", "scan", "scan_files"]
