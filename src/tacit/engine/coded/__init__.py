"""Rows as cells of public grids, for learning: coded once, then added up in every round."""
