"""The functions of the question language: one record each, the catalogue of all, and their values in Python."""
