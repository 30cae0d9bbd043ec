"""The local protocols: how each draws one report and counts many. One file for each protocol."""
