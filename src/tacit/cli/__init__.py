"""The `tacit` command: `app` ties the commands together, and every command is a separate module."""
