"""The durable record of every charge: entries in a hash chain, kept by SQLite or PostgreSQL.

`open_ledger` gives a `Ledger`. A table is registered once with its budget; every question is then reserved before a
row is read, which charges it, and committed before its answer leaves, which stores it.
"""

from tacit.ledger.charging import Receipt, StoredAnswer
from tacit.ledger.home import open_ledger
from tacit.ledger.ledger import Ledger, Reservation
from tacit.ledger.registry import RegisteredTable

__all__ = ["Ledger", "Receipt", "RegisteredTable", "Reservation", "StoredAnswer", "open_ledger"]
