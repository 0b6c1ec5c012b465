"""The paper, one short file per table or figure: what is trained for it, and whether its claims hold.

Grids of one's own are reported on in the same way: `own.report`, which is `cwbc.report`.
"""
