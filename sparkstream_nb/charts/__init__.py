"""Charts: points of series, thinning, and Plotly figures. It knows frames and numbers, and nothing of apps."""
