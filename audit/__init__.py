"""Questions after the fact about a corpus that stands."""
