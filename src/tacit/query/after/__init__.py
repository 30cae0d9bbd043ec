"""Post-processing of a noisy answer: checks, values on its rows and windows, and intervals of computed numbers."""
