"""Learning: what Hermes remembers (memory), what it has learned to do (skills), and how both may change.

Everything here is files of the user's home. Each change has an author, a difference and a way back.
"""
