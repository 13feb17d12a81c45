"""Sign-ins: accounts instead of keys. Imported only where an account is configured, or somebody signs in."""
