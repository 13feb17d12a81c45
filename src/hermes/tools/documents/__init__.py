"""Reads documents as text: PDF, Office, EPUB, e-mail, notebooks, archives.

`extract` parses each document in a separate process, inside the sandbox and with limits, because its author may be
anybody. `reader` starts that process; `kinds` tells documents from text and from recordings.
"""
