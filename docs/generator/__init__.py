"""The documentation site: `python -m docs.generator` writes it to `site/`.

`pages.py` copies the Markdown of the repository and mends its links, `notebooks.py` renders the notebooks with their
saved outputs, and the other modules generate the reference pages from the tables that the code itself reads:
signatures, parsers of arguments, options of connectors, metrics, docstrings. MkDocs then makes static pages of them
(`conf/mkdocs.yml`).
"""
