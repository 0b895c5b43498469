"""Makes the pages of the documentation site that are not in ``docs/``.  ``mkdocs.yml`` names ``hook.py``."""
