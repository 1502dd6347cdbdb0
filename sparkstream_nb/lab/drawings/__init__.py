"""Charts, tables and diagrams as SVG and HTML."""
