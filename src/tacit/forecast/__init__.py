"""What can be said before asking: a plan in words, the epsilon an error takes, what more people buy."""
