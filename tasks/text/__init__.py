"""Algorithms on text: pure functions that read and write no file."""
