"""Engines: read rows and add up exact, bounded integers. They never see noise."""
