"""The SQL door: text to records and back. `statement` reads a whole SELECT, `expressions` what stands in it."""
