"""The only door for faces (CLI, API, page, terminal): one typed interface per noun, the same on the store or over HTTP.

`base.Station` holds the nouns; each module beside it is one noun's interface with the values that it speaks in.
`local/` answers from the store of this installation.
"""

LONGEST_NAME = 200
"""The longest name that people can give to something or search for; much longer ones break the store."""
