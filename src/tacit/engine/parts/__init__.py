"""An exact table from rows that are cut by unit: pure functions of rows, a question and a salt, for any scheduler."""
