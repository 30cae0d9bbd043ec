"""The quick way through rows: packed columns, compiled loops."""
