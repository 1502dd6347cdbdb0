"""The picture of an app's graph: `graph_layout` says where things are (by dagre), `graph_drawing` makes SVG of it."""
