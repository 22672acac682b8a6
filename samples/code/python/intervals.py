"""Sets of whole numbers kept as sorted, disjoint, half-open intervals."""

from bisect import bisect_left, bisect_right


class IntervalSet:
    """A set of integers that stores ranges and not members, so [0, 10**12) costs two numbers.

    >>> s = IntervalSet()
    >>> s.add(3, 7)
    >>> s.add(10, 12)
    >>> s.add(6, 10)
    >>> list(s)
    [(3, 12)]
    """

    def __init__(self):
        self._starts = []
        self._stops = []

    def __iter__(self):
        return iter(zip(self._starts, self._stops, strict=True))

    def __contains__(self, value):
        i = bisect_right(self._starts, value) - 1
        return i >= 0 and value < self._stops[i]

    def __len__(self):
        return sum(stop - start for start, stop in self)

    def add(self, start, stop):
        """Adds [start, stop); ranges that touch are joined."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)
        last = bisect_right(self._starts, stop)
        if first < last:
            start = min(start, self._starts[first])
            stop = max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def remove(self, start, stop):
        """Takes [start, stop) out, splitting what reaches over it on either side."""
        if start >= stop:
            return
        first = bisect_right(self._stops, start)
        last = bisect_left(self._starts, stop)
        kept = []
        for i in range(first, last):
            if self._starts[i] < start:
                kept.append((self._starts[i], start))
            if self._stops[i] > stop:
                kept.append((stop, self._stops[i]))
        self._starts[first:last] = [a for a, _ in kept]
        self._stops[first:last] = [b for _, b in kept]

    def gaps(self, start, stop):
        """Yields the parts of [start, stop) that are not in the set."""
        at = start
        for a, b in self:
            if b <= at:
                continue
            if a >= stop:
                break
            if a > at:
                yield at, a
            at = b
        if at < stop:
            yield at, stop
