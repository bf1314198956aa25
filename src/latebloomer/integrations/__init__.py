"""Adapters for other libraries; each module loads its library when it is imported or used."""
