"""Cases and planted bugs of learned bounds: scaling into caps, totals of what was cut, profiles, keys and facts."""
