"""The ways one report is drawn and counted: one file a protocol."""
