"""Experiments: every arm with every seed is run (or resumed) to its end, measured, and compared over seeds."""
