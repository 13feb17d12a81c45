"""Boards: cards that people and agents create, and that run as separate sessions."""
