"""How differently members behave."""

import numpy as np
import pytest

from redqueen.evolve.health import proposing_distances, solving_distances


def test_students_differ_by_what_they_solve() -> None:
    rates = np.array([[1.0, 0.0, 0.5], [0.0, 0.0, np.nan], [np.nan, np.nan, np.nan]])
    distances = solving_distances(rates)
    assert distances[0, 1] == pytest.approx(0.5)
    assert np.isnan(distances[0, 2])


def test_teachers_differ_by_the_classes_of_task_they_write() -> None:
    distances = proposing_distances(np.array([[3.0, 1.0], [1.0, 3.0], [0.0, 4.0], [0.0, 0.0]]))
    assert distances[0, 1] == pytest.approx(0.5)
    assert distances[0, 2] == pytest.approx(0.75)
    assert np.isnan(distances[0, 3]) and distances[0, 0] == 0.0
