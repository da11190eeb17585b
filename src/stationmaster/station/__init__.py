"""The only interface for faces (CLI, API): one typed protocol per noun, which could also be served over HTTP.

`base.Station` holds the nouns; each module beside it has the protocol of one noun and its values.
`local/` answers from the store of this installation.
"""

LONGEST_NAME = 200
"""The longest name that people can give to something or search for; much longer ones break the store."""
