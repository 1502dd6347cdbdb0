"""Options of sources, sinks and mappings, as the plan checks them."""
