"""What happens to a noisy answer: checks, values on its rows and windows, and where computed numbers may be."""
