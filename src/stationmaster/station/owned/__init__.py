"""The station as one user sees it: only what is theirs, and only what they may do.

Every request of someone who is not an administrator goes through this. What another user owns does not exist here: the
error is the one for a name that nobody used, so that nothing can be guessed.
"""
