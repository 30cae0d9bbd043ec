"""Questions: two doors, SQL and Python, that make one tree of frozen records, and the checks on it."""
