"""The simulation of a cluster against cases that are computed by hand."""

from dataclasses import replace
from math import erf

import pytest

from redqueen.cluster.simulate import Cluster, Stage, shares, simulate, step_stages
from redqueen.cluster.traffic import Traffic

PAIR = Cluster(num_nodes=2, num_shards=2, link_bytes_s=100.0, latency_s=0.0, notice_s=1.0, open_s=3.0)
WORK = Stage("work", shard_s=10.0)


def test_calls_leave_one_after_the_other_and_answers_come_back_so() -> None:
    # Asked at 1 and 2 s, done at 11 and 12 s, answered at 13 and, as the line is busy until then, at 15 s.
    stage = Stage("work", shard_s=10.0, asked_bytes=100, answered_bytes=200, driver_s=4.0)
    assert simulate([stage], PAIR).step_s == (19.0,)


def test_shards_of_one_machine_work_one_after_the_other() -> None:
    # Asked at 1 and 2 s, done at 11 and 21 s, answered at 13 and 23 s.
    stage = Stage("work", shard_s=10.0, asked_bytes=100, answered_bytes=200)
    assert simulate([stage], replace(PAIR, num_nodes=1)).step_s == (23.0,)


def test_the_way_there_and_back_takes_its_time() -> None:
    assert simulate([WORK], replace(PAIR, latency_s=0.5)).step_s == (11.0,)


@pytest.mark.parametrize(("num_nodes", "seconds"), [(1, 10.0), (2, 5.0)])
def test_backups_share_the_line_of_their_machine_and_the_next_update_waits_for_them(
    num_nodes: int, seconds: float
) -> None:
    outcome = simulate([Stage("learn", backup_bytes=500)], replace(PAIR, num_nodes=num_nodes), num_steps=2)
    assert outcome.step_s == (0.0, seconds)


def test_backups_travel_while_shards_work() -> None:
    # Five seconds of backup beside three of work: the second update begins two seconds late.
    stages = [Stage("learn", backup_bytes=500), replace(WORK, shard_s=3.0)]
    assert simulate(stages, PAIR, num_steps=2).step_s == (3.0, 5.0)
    assert simulate([stages[0], WORK], PAIR, num_steps=2).step_s == (10.0, 10.0)


def test_a_shard_that_is_lost_works_again_where_there_is_room() -> None:
    # Dead at 4 s, noticed at 5, open on the other machine at 8, which has its own work until 10: 10 more.
    outcome = simulate([WORK], PAIR, deaths=[(4.0, 0)])
    assert outcome.step_s == (20.0,) and (outcome.num_dead, outcome.num_revived) == (1, 1)


def test_lost_shards_are_opened_one_after_the_other() -> None:
    # Machine 0 of 3 has two of four shards, 10 s each; dead at 12 s with one done. Both are lost at 13 s for they are
    # still to answer or to work; here the first has answered, so one is opened: 16, on machine 1, idle since 10: 26.
    cluster = replace(PAIR, num_nodes=3, num_shards=4)
    assert simulate([WORK], cluster, deaths=[(12.0, 0)]).step_s == (26.0,)
    # Dead at 4 s: noticed at 5, opened at 8 and 11, on machine 1 (busy until 10) and on machine 2: 20 and 21.
    assert simulate([WORK], cluster, deaths=[(4.0, 0)]).step_s == (21.0,)


def test_a_backup_that_must_be_fetched_takes_the_time_of_its_bytes() -> None:
    # As above, and 200 bytes to fetch: open at 10 s, as the other's own work ends: 20. With 700: open at 15: 25.
    assert simulate([WORK], replace(PAIR, restore_bytes=200), deaths=[(4.0, 0)]).step_s == (20.0,)
    assert simulate([WORK], replace(PAIR, restore_bytes=700), deaths=[(4.0, 0)]).step_s == (25.0,)


@pytest.mark.parametrize(("death_s", "seconds"), [(11.0, 36.0), (16.0, 28.0)])
def test_a_loss_before_the_backup_has_arrived_repeats_the_update(death_s: float, seconds: float) -> None:
    # Learned at 10 s, backups there at 15 s, the other's work done at 18 s. Dead at 11 s, noticed at 12, open at 15:
    # from 18 on 10 s of learning and 8 of work. Dead at 16 s, noticed at 17, open at 20: 8 s of work alone.
    stages = [Stage("learn", 10.0, backup_bytes=500), replace(WORK, shard_s=8.0)]
    assert simulate(stages, PAIR, deaths=[(death_s, 0)]).step_s == (seconds,)


def test_a_machine_that_comes_gets_its_shards_back_after_the_update() -> None:
    # First step: both on machine 1 at the end (20 s). Machine 0 is back at 9 s: one moves in 3 s. Then all as before.
    stage = replace(WORK, moves_after=True)
    outcome = simulate([stage], replace(PAIR, absent_s=5.0), num_steps=2, deaths=[(4.0, 0)])
    assert outcome.step_s == (23.0, 10.0) and outcome.num_moved == 1


def test_shards_stay_together_while_no_machine_comes() -> None:
    outcome = simulate([replace(WORK, moves_after=True)], PAIR, num_steps=2, deaths=[(4.0, 0)])
    assert outcome.step_s == (20.0, 20.0) and outcome.num_moved == 0


def test_a_cluster_without_any_machine_waits_for_the_first() -> None:
    # Both are dead at 4 s, noticed at 5, back at 604 and 614: opened at 607 and 610 on the first; 617 and 627.
    deaths = [(4.0, 0), (14.0, 1)]
    assert simulate([replace(WORK, shard_s=30.0)], PAIR, deaths=deaths).step_s == (667.0,)


def test_stragglers_cost_what_the_slower_of_two_costs_on_average() -> None:
    # The mean of the larger of two log-normals of mean 1: 2 Phi(s / sqrt 2).
    mean_s = simulate([WORK], replace(PAIR, spread=0.5), num_steps=20_000).mean_s
    assert mean_s == pytest.approx(10 * (1 + erf(0.5 / 2)), rel=0.01)


def test_machines_die_as_often_as_they_live_long() -> None:
    cluster = replace(PAIR, mean_life_s=100.0, absent_s=0.0)
    outcome = simulate([replace(WORK, moves_after=True)], cluster, num_steps=5000)
    assert outcome.num_dead == pytest.approx(2 * sum(outcome.step_s) / 100, rel=0.1)


def test_shares_add_up_to_the_step_and_the_same_seed_gives_the_same() -> None:
    cluster = replace(PAIR, num_nodes=4, num_shards=8, spread=0.3, mean_life_s=2000.0)
    found = shares([replace(WORK, moves_after=True)], cluster, 500)
    assert found.calm_s == 20.0 and found.stragglers_s > 0 and found.deaths_s > 0
    assert found.step_s == pytest.approx(found.outcome.mean_s)
    assert found == shares([replace(WORK, moves_after=True)], cluster, 500)


def test_a_step_has_its_stages_with_a_shards_part_of_the_bytes() -> None:
    traffic = Traffic(400, 800, 1200, 40, 2000)
    seconds = {"propose_s": 5.0, "solve_s": 6.0, "learn_s": 7.0, "verify_s": 8.0, "other_s": 1.0}
    stages = step_stages(traffic, 2, **seconds)
    assert [stage.name for stage in stages] == ["propose", "solve", "learn"]
    assert sum(stage.asked_bytes for stage in stages) * 2 == 1600
    assert sum(stage.answered_bytes for stage in stages) * 2 == 840
    assert sum(stage.backup_bytes for stage in stages) * 2 == 2000
    free = replace(PAIR, link_bytes_s=1e12)
    assert simulate(stages, free).step_s == (pytest.approx(5 + 6 + 7 + 8 + 1),)
    near = step_stages(traffic, 2, **seconds, verify_near=True)
    assert simulate(near, free).step_s == (pytest.approx(5 + 6 + 7 + 8 / 2 + 1),)
