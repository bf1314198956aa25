"""Rest-Sure drops the arms that a comparison of all pairs would, without making it."""

from hypothesis import given
from hypothesis import strategies as st

from latebloomer.core.ledger import PULLS, RACERS
from latebloomer.core.moves import lists_for
from latebloomer.policies.power_law import drop_dominated

# Few values, so that ties and differences of exactly `sure` occur, or any.
VALUES = st.sampled_from([-0.3, 0.0, 0.1, 0.2, 0.3, 0.5, 1.0]) | st.floats(-1e6, 1e6)
ENDS = st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=40)


def dropped_by_definition(ends, sure):
    """Every arm whose values another beats at both ends by more than `sure`."""
    return {
        i
        for i, (rating, memo) in enumerate(ends)
        if any(other[0] - rating > sure and other[1] - memo > sure for other in ends)
    }


@given(ends=ENDS, sure=st.sampled_from([0.0, 0.1, 0.2, 0.5]) | st.floats(0, 1e6), data=st.data())
def test_one_walk_drops_whom_all_pairs_would_drop(ends, sure, data):
    absent = data.draw(st.sets(st.integers(0, len(ends) - 1), max_size=len(ends) - 2))
    ledger = lists_for(len(ends))
    ledger.rating[:], ledger.memo[:] = zip(*ends, strict=True)
    racing = [i for i in range(len(ends)) if i not in absent]
    ledger.racing[: len(racing)], ledger.cursor[RACERS] = racing, len(racing)
    ledger.cursor[PULLS] = 99
    drop_dominated(ledger, sure)
    dropped = dropped_by_definition([ends[i] for i in racing], sure)
    stay = [i for place, i in enumerate(racing) if place not in dropped]
    assert ledger.racing[: ledger.cursor[RACERS]] == stay
    assert [i for i, at in enumerate(ledger.out) if at] == [racing[p] for p in sorted(dropped)]
