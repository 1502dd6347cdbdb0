"""The picture of an app's graph: `layout` says where things are (by dagre), `drawing` makes SVG of it."""
