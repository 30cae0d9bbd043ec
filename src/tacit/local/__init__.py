"""The local model: each person perturbs their own answer before sending it, and trusts nobody with the truth."""
