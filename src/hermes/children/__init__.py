"""Programs that Hermes starts: its own Python without anything of the folder it starts in (`python`), helper programs
from outside every workspace (`programs`), and programs spoken to through pipes that never outlive it (`child`)."""
