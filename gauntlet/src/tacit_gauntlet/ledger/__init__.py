"""Attacks on the ledger: races, crashes, damage, forged records and lost answers."""
