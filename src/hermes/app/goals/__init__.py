"""Goals: what a session works towards over many turns, checked and judged after each turn."""
