"""What a case and a planted bug are, how they are run, each in a process of its own, and what is written about it."""
