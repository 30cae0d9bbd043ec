"""What events cost: composition, conversion between notions of loss, and calibration. Knows no samplers."""
