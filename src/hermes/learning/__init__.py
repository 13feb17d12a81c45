"""Learning: what Hermes remembers (memory), what it has learned to do (skills), and how both
change.

Everything here is stored as files in the user's home. Each change has an author and a diff, and can
be reverted.
"""
