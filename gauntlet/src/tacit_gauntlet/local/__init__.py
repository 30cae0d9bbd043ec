"""Attacks on local reports and on what is estimated from them."""
