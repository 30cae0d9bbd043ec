"""Releases: the only place that adds noise to exact sums. `noisy.py` is the page for an auditor."""

from tacit.release.noisy import release, release_choice, release_integers, release_vector
from tacit.release.noisy_table import NoisyTable, basis_in, joined, keys_from, keys_record, stamp_in
