"""The commands of Hermes: each is one typed function, used by every surface.

`command` has the decorator, `table` finds commands, `views` describes results. To add a command, write a function in
the module of its topic; the shell, the chats, HTTP and the reference page use that function.
"""
