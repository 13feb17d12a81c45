"""A real browser, for pages that need scripts, a login or a click: `browser_tools` are its tools, `session` drives it."""
