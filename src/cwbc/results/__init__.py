"""The results of evaluations: returns, metrics, intervals and recommendations."""
