"""The classic attacks on published numbers, each on exact answers and on ours: the same table, the same questions.

`reconstruct` rebuilds a secret column, `average` repeats a question, `difference` subtracts one count from another,
`membership` asks whether somebody is in the data, `name_and_shame` shows what a large delta allows. Each returns a
frozen result that prints, draws itself with `.plot("file.png")`, and ends in one sentence for somebody who decides.

Nothing here is ever charged: our side is a table of its own, with a ledger in memory that ends with the attack.
"""

from tacit.auditing.attacks.averaging import average
from tacit.auditing.attacks.differencing import difference
from tacit.auditing.attacks.exposure import name_and_shame
from tacit.auditing.attacks.members import membership
from tacit.auditing.attacks.people import made_up, read_people
from tacit.auditing.attacks.reconstruction import reconstruct

__all__ = ["average", "difference", "made_up", "membership", "name_and_shame", "read_people", "reconstruct"]
