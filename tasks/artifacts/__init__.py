"""The formats on disk: standard library, numpy and pyarrow only."""
