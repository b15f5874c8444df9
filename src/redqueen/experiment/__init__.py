"""experiment: every arm with every seed, played or resumed to the end, measured and compared over seeds."""
