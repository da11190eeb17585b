"""What every request passes before it reaches a route: one middleware per file, put in order by `chain`.

All are plain ASGI, so that streams pass through them piece by piece.
"""
