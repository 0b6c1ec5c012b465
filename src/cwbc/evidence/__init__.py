"""What a grid measured: curves by dataset and method, rules that decide claims, tables and charts of it."""
