"""Made-up rows from noisy tables: columns, choice of pairs, a fitted field, rows and their errors."""
