"""The nine steps of the mill, what performs them, and the formats they write."""
