"""The classic attacks on published numbers, each on exact answers and on ours: the same table, the same questions.

`reconstruct` rebuilds a secret column, `average` repeats a question, `difference` subtracts one count from another,
`membership` asks whether a person is in the data, `name_and_shame` shows the risk of a large delta. Results are
frozen, print themselves, are drawn with `.plot("file.png")`, and end in one sentence for decision makers.

Attacks are never charged: our side is a separate table, with a ledger in memory that ends with the attack.
"""

from tacit_classroom.attacks.averaging import average
from tacit_classroom.attacks.differencing import difference
from tacit_classroom.attacks.exposure import name_and_shame
from tacit_classroom.attacks.members import membership
from tacit_classroom.attacks.people import People, made_up, read_people
from tacit_classroom.attacks.reconstruction import reconstruct

__all__ = ["People", "average", "difference", "made_up", "membership", "name_and_shame", "read_people", "reconstruct"]
