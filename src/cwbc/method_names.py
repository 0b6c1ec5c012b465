"""The methods that have a name of their own, in the order that reports show them; what they are needs jax."""

NAMES = (
    "bc", "filtered-bc",
    "rvs", "rvs+w", "rvs+c", "rvs+f", "rvs+f+c", "rvs+cwbc",
    "dt", "dt+cwbc", "dt+c", "dt+w+c", "dt+f",
    "dt-concat", "dt-concat+w", "dt-concat+c", "dt-concat+cwbc", "dt-concat+f",
)  # fmt: skip
