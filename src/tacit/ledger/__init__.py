"""The durable record of every charge: entries in a hash chain, kept by SQLite or PostgreSQL.

`open_ledger` gives a `Ledger`. A table is registered once with its budget; every question is then reserved before a
row is read, which charges it, and committed before its answer leaves, which stores it.
"""

from tacit.ledger.budget import budget_from
from tacit.ledger.certificate import deployment, verify_certificate
from tacit.ledger.chain import BEGINNING
from tacit.ledger.charging import Learning, Receipt, StoredAnswer, StoredFact
from tacit.ledger.entry import Entry
from tacit.ledger.home import TRYOUT, TryOut, back_up, change_key, has_default_ledger, open_ledger, restore
from tacit.ledger.ledger import Ledger
from tacit.ledger.notes import Note, Step
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.reservation import Reservation
from tacit.ledger.roles import Person, Token, until_text
from tacit.ledger.spelling import name_key
from tacit.ledger.sqlite import MEMORY
from tacit.ledger.status import Asker, BudgetRoom, BudgetStatus, Fit, Left, cost_words, entry_line, spent_words
