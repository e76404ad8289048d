"""Who may do what, and with which key."""
