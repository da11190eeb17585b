"""The only door for faces (CLI, API, page, terminal): one typed interface per noun, the same on the store or over HTTP.

`base.Station` holds the nouns; each module beside it is one noun's interface with the values that it speaks in.
`local/` answers from the store of this installation.
"""
