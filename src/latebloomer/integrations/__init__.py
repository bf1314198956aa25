"""Learners made of other libraries' parts; each loads its library when it is imported or used."""
