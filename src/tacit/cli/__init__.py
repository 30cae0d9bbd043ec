"""The `tacit` command: `app` ties the commands together, and each command has a module of its own."""
