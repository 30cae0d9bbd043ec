"""What tries to prove us wrong: the gauntlet of published attacks, and the statistics that judge it."""
