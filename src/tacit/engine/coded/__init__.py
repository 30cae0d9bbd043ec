"""Rows as cells of public grids, for learning: coded once, then added up as often as a model asks."""
