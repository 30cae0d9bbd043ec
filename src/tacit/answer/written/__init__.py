"""An answer as it is written down, and read back: over HTTP, and out of the ledger."""
