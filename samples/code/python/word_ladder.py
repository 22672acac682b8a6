"""Finds the shortest ladder from one word to another, changing one letter at a time."""

from collections import defaultdict, deque


def neighbours(words):
    """word -> set of words that differ from it in exactly one place."""
    by_pattern = defaultdict(list)
    for word in words:
        for i in range(len(word)):
            by_pattern[word[:i] + "_" + word[i + 1 :]].append(word)
    graph = defaultdict(set)
    for group in by_pattern.values():
        for word in group:
            graph[word].update(other for other in group if other != word)
    return graph


def ladder(words, start, goal):
    """The list of words from start to goal, or None when there is no way.

    >>> ladder(["cold", "cord", "card", "ward", "warm", "word", "worm"], "cold", "warm")
    ['cold', 'cord', 'card', 'ward', 'warm']
    """
    graph = neighbours(sorted({*words, start, goal}))
    came_from = {start: None}
    queue = deque([start])
    while queue:
        word = queue.popleft()
        if word == goal:
            return _walk_back(came_from, goal)
        for other in sorted(graph[word]):
            if other not in came_from:
                came_from[other] = word
                queue.append(other)
    return None


def _walk_back(came_from, word):
    path = []
    while word is not None:
        path.append(word)
        word = came_from[word]
    return path[::-1]
