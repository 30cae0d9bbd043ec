"""Noise: the only place where random bits are made and noise is drawn, exactly by the law it names."""
