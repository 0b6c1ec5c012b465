"""The paper, one short file per table or figure: what is trained for it, and whether its claims hold."""
