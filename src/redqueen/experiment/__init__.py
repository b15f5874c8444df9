"""experiment: every arm with every seed, run or resumed to the end, measured and compared over seeds."""
