"""Which shards move when machines come and go."""

import pytest

from redqueen.cluster.host import shards_to_move


@pytest.mark.parametrize(
    ("stand_on", "room", "moving"),
    [
        (["a", "b"], {"a": 1, "b": 1}, []),
        (["a", "a"], {"a": 1}, []),
        (["a", "a"], {"a": 1, "b": 1}, [1]),
        (["a", "a", "a", "a"], {"a": 1, "b": 1}, [3, 2]),
        (["a", "b", "a"], {"a": 1, "b": 1}, []),  # two and one: moving one would only change who has two
        (["a", "a"], {"a": 2, "b": 1}, []),  # two shards on two cores are not crowded
        (["a", "a", "a", "b"], {"a": 1, "b": 3}, [2, 1]),
        (["gone", "a"], {"a": 1, "b": 1}, []),  # what is lost is found when it is asked
        (["a", "b"], {}, []),
    ],
)
def test_shards_move_to_machines_with_room_and_no_further(
    stand_on: list[str], room: dict[str, float], moving: list[int]
) -> None:
    assert shards_to_move(stand_on, room) == moving


def test_after_a_move_nothing_is_left_to_move() -> None:
    room = {"a": 1.0, "b": 2.0, "c": 5.0}
    stand_on = ["a"] * 16
    moving = shards_to_move(stand_on, room)
    assert len(set(moving)) == len(moving)
    counts = {"a": 16 - len(moving)}
    assert counts["a"] == 2, "a core of eight has two of sixteen shards"
