"""How a fitted additive model is shown: its terms as tables and words, as pictures, and as SQL."""
