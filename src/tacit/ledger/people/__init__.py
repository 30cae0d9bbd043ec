"""Who may ask: people, their roles and tokens, and when two names are one."""
