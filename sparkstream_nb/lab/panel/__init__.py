"""The kernel's side of JupyterLab's side panel: the state of its apps, requests about them, views beside a notebook."""
