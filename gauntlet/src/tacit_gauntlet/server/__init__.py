"""Attacks on the server: who may ask what, bodies, times, tokens, digits."""
