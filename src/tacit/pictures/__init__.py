"""The one home of drawings: plain records as Vega-Lite, one palette, one writer. Knows no answers."""
