"""What models learn of columns that nobody declared."""
