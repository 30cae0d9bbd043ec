"""PostgreSQL's protocol, by hand: the same desk, tokens, clock and ledger as over HTTP, for psql and BI tools."""

from tacit.server.postgres.door import Door
from tacit.server.postgres.public_catalog import DATABASE
