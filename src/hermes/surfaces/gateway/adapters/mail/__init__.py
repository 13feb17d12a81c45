"""E-mail, through IMAP and SMTP."""
