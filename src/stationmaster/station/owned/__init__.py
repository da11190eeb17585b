"""The station as one user sees it: only what is theirs, and only what they may do.

Every request of a user who is not an administrator goes through this. What another user owns does not exist here: the
error is the one for an unused name, so that nothing can be guessed.
"""
