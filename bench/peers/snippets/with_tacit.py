"""Mean income by state, private for each person: the words it takes in Tacit. This line is not counted."""

import tacit

people = tacit.table("people.parquet", unit="person_id", rows_per_unit=1, groups_per_unit=1, budget=tacit.epsilon(1))
print(people.group_by("state", keys=["CA", "NY", "TX"]).mean("income", between=(0, 500_000)).answer(epsilon=1))
