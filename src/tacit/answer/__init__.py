"""Post-processing of what was released: columns, error bars, printing. Reads no row and no secret."""
