"""A deployment and its folder: what is recorded, owned, changed and scaled."""
