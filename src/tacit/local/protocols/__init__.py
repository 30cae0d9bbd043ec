"""The local protocols: drawing one report, and counting many. There is one file for each protocol."""
