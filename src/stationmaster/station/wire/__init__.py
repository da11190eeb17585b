"""The station's values as JSON, and back: what the API answers, what `--server` reads, what `--json` prints.

One module per noun. A document is made by `of(value)`, and `value()` returns what faces work with. Fields are added,
never renamed or removed: an older client ignores those that it does not know.
"""
