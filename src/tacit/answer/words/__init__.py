"""An answer in words: the three lines below it, and the facts that its details list."""
