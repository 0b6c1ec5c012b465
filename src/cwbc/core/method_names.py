"""The names of the listed methods, in the order of reports; apart from the methods, which import jax."""

NAMES = (
    "bc", "filtered-bc",
    "rvs", "rvs+w", "rvs+c", "rvs+f", "rvs+f+c", "rvs+cwbc",
    "dt", "dt+cwbc", "dt+c", "dt+w+c", "dt+f",
    "dt-concat", "dt-concat+w", "dt-concat+c", "dt-concat+cwbc", "dt-concat+f",
    "td3bc", "iql", "cql", "discrete-cql", "rebrac", "rvs+q", "rvs+qr", "dt+q",
)  # fmt: skip
