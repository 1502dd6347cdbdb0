"""Results as pictures: plain data, which `charts` draws as SVG and with Plotly."""
