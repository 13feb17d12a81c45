"""Reads documents as text: PDF, Office, EPUB, e-mail, notebooks, archives.

Each document is taken apart by `extract` in a process of its own, inside the sandbox and with limits, because its
author may be anybody. `reader` starts that process; `kinds` tells documents from text and from recordings.
"""
