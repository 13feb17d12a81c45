"""The commands of Hermes: each is one typed function, whichever surface it is given on.

`command` has the decorator, `table` finds commands, `views` says what a result looks like. To add a command, write a
function in the module of its topic; the shell, the chats, HTTP and the reference page take it from there.
"""
