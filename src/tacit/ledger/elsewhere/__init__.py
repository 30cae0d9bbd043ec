"""What of a ledger stands elsewhere: an anchor that knows how far it had come, and a backup."""
