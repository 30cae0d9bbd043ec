"""Who carries a charge out: one process at a time, and another where that has died."""
