"""What Tacit teaches with: the classic attacks, a holdout that is fooled, and pages with experiments.

`tacit_classroom.attacks` has the attacks as functions. The command line and the server find the rest by its entry
points.
"""
