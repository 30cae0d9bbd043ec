"""The fast execution paths: rows as packed columns, bounded and added up by compiled loops."""
