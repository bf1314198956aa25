"""The BibTeX entries to cite for each policy and result."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from latebloomer.policies.registry import make_policy

if TYPE_CHECKING:
    from latebloomer.policies.base import Policy


def references() -> dict[str, str]:
    """Return every BibTeX entry by its key, which docstrings cite like [Mussi24, Alg. 1]."""
    text = (files("latebloomer") / "refs.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip()]
    return {re.match(r"@\w+{([^,]+),", entry)[1]: entry for entry in entries}  # type: ignore[index]


def cite(what: Policy | str = "Mussi24") -> str:
    """Return the BibTeX entry of a policy, or the entry with a key.

    Parameters
    ----------
    what : Policy | str
        A policy, its name, or a key of refs.bib. Default: the paper that this library implements.

    Returns
    -------
    str
        The BibTeX entry.

    Raises
    ------
    UnknownName
        No policy and no key has that name.

    Examples
    --------
    >>> print(cite("sr").splitlines()[0])
    @inproceedings{Audibert10,
    """
    known = references()
    if isinstance(what, str) and what in known:
        return known[what]
    return "\n\n".join(known[key] for key in make_policy(what).cites or ("Mussi24",))
