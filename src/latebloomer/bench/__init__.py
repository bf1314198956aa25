"""Policies on curves of real learners: `latebloomer bench` and what is behind it.

`curves.py` says what a problem is, `public.py`, `made.py` and `folder.py` where problems come
from, `play.py` plays policies on them, `losses.py` counts, `report.py` and `picture.py` show.
"""
