"""Boards: cards that people and agents make, and that run as sessions of their own."""
