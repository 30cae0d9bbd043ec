"""What users of a fitted model are used to: to keep it in a file, and to have it again."""
