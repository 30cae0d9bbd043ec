"""Noise: the only place where random bits are made; coins, even choices and noise are drawn from them by exact laws."""
