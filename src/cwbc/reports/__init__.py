"""Reports from evaluated sweeps; they need the files on disk alone, and never a simulator."""

from cwbc.reports.comparison import summary_table, write_report

__all__ = ["summary_table", "write_report"]
