"""Interactive views. Each also renders as a static chart and table where widgets do not work."""
