"""Reads for tests of a folder's function: tables and arrays held in memory."""

from __future__ import annotations

from pathlib import Path


class MemoryReads:
    """Reads over dicts: tables["step/folder"] or tables["step/folder", unit]; arrays likewise by suffix."""

    def __init__(self, name="part-0", tables=None, arrays=None, spec=None, paths=None, previous=None):
        self.name = name
        self.spec = spec or {}
        self._tables, self._arrays, self._paths = tables or {}, arrays or {}, paths or {}
        self._previous = previous

    def _find(self, store, folder, unit):
        return store[folder, unit or self.name] if (folder, unit or self.name) in store else store[folder]

    def table(self, folder, columns=None, unit=None):
        table = self._find(self._tables, folder, unit)
        return table if columns is None else table.select(list(columns))

    def array(self, folder, suffix, dtype, unit=None):
        own = folder + suffix
        known = (own, unit or self.name) in self._arrays or own in self._arrays
        return self._find(self._arrays, own if known else folder, unit).astype(dtype)

    def path(self, folder, suffix="", unit=None):
        own = folder + suffix
        known = (own, unit or self.name) in self._paths or own in self._paths
        return Path(self._find(self._paths, own if known else folder, unit))

    def units(self, folder):
        return sorted(key[1] for key in self._tables if isinstance(key, tuple) and key[0] == folder) or [self.name]

    def previous(self):
        return self._previous
