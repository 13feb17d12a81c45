"""Programs that Hermes starts: its own Python, which loads no code from the current folder (`python`), helper programs
from outside every workspace (`programs`), and programs we talk to through pipes, which end with Hermes (`child`)."""
