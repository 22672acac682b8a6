"""Interpolates the height of the tide between high and low water by the rule of twelfths."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

TWELFTHS = (0, 1, 3, 6, 9, 11, 12)


@dataclass(frozen=True)
class Turn:
    """One line of a tide table."""

    time: datetime
    metres: float


def height_at(turns, moment):
    """Height in metres at `moment`; the table must have a turn on either side of it."""
    for before, after in pairwise(turns):
        if before.time <= moment <= after.time:
            return _between(before, after, moment)
    raise ValueError(f"{moment:%d %B %H:%M} lies outside the table")


def _between(before, after, moment):
    share = (moment - before.time) / (after.time - before.time)
    sixth, rest = divmod(share * 6, 1)
    sixth = int(sixth)
    if sixth == 6:
        return after.metres
    low, high = TWELFTHS[sixth], TWELFTHS[sixth + 1]
    twelfths = low + rest * (high - low)
    return before.metres + (after.metres - before.metres) * twelfths / 12


def windows(turns, needed, step=timedelta(minutes=5)):
    """Yields (from, until) while there are at least `needed` metres over the sill."""
    opened = None
    moment = turns[0].time
    while moment <= turns[-1].time:
        deep = height_at(turns, moment) >= needed
        if deep and opened is None:
            opened = moment
        if not deep and opened is not None:
            yield opened, moment - step
            opened = None
        moment += step
    if opened is not None:
        yield opened, turns[-1].time


if __name__ == "__main__":
    day = datetime(2024, 5, 1)
    table = [
        Turn(day + timedelta(hours=2, minutes=12), 1.1),
        Turn(day + timedelta(hours=8, minutes=20), 4.6),
        Turn(day + timedelta(hours=14, minutes=41), 0.9),
        Turn(day + timedelta(hours=20, minutes=50), 4.8),
    ]
    for start, end in windows(table, needed=2.5):
        print(f"{start:%H:%M} to {end:%H:%M}")
