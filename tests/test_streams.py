"""Random streams: a draw is a function of (seed, step, purpose) and of nothing else."""

from redqueen.streams import Streams


def test_the_same_seed_step_and_purpose_give_the_same_draws() -> None:
    one, two = Streams(7, 3).rng("match"), Streams(7, 3).rng("match")
    assert one.random(5).tolist() == two.random(5).tolist()


def test_another_seed_step_or_purpose_gives_other_draws() -> None:
    draws = {
        Streams(7, 3).seed("match"),
        Streams(8, 3).seed("match"),
        Streams(7, 4).seed("match"),
        Streams(7, 3).seed("solve"),
        Streams(7, 3).seed("solve", "1-T1-0"),
        Streams(7, 3).seed("solve", "1-T1-1"),
    }
    assert len(draws) == 6


def test_seed_and_step_are_kept_apart_and_so_are_the_words_of_a_purpose() -> None:
    assert Streams(1, 23).seed("x") != Streams(12, 3).seed("x")
    assert Streams(0, 0).seed("a", "bc") != Streams(0, 0).seed("ab", "c")
    assert Streams(0, 0).seed("a", 1) == Streams(0, 0).seed("a", "1")


def test_a_seed_fits_into_63_bits_and_is_the_published_digest() -> None:
    seeds = [Streams(0, step).seed("solve", step) for step in range(200)]
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**62  # the upper bits are used
    # The first eight bytes of sha256("0", "0", "match", joined by NUL) less one bit: were it to change, no run made
    # before could be repeated.
    assert Streams(0, 0).seed("match") == 0x7B6F1DE1F246BEF2


def test_asking_for_one_stream_does_not_move_another() -> None:
    streams = Streams(0, 1)
    first = streams.rng("a").random()
    streams.rng("b").random(100)
    assert streams.rng("a").random() == first
