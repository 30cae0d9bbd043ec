"""Privacy as values: numbers with exact meaning, losses, events, and the exact laws of the noise. No I/O."""
