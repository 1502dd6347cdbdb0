"""The manager: apps deployed and watched over HTTP and in a folder."""
