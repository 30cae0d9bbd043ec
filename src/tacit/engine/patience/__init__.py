"""The patient path: rows are sorted on disk, and unit after unit gives the same integers in little memory."""
