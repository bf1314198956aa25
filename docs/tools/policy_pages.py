"""A page for each policy of the registry: picture, plan, formula, when it fails, what to cite."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from leftovers import remove_others
from policy_notes import NOTES

from latebloomer import Session, cite
from latebloomer.policies.base import Policy
from latebloomer.policies.registry import REGISTRY, make_policy
from latebloomer.problems import problem

NAMES = ("late", "second", "early", "weak", "slow")
INK = ("#c1272d", "#1f4e79", "#d98200", "#5b687a", "#2f7d4f")
BUDGET = 400


def write_policy_pages(folder: Path) -> None:
    """Pages and pictures of all policies, and the page that lists them."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = set(REGISTRY) ^ set(NOTES)
    if missing:
        raise ValueError(f"docs/tools/policy_notes.py and the registry differ: {sorted(missing)}")
    for name in REGISTRY:
        draw_run(playable(name), folder / f"{name}.png")
        write(folder / f"{name}.rst", page(name))
    write(folder / "index.rst", index())
    remove_others(folder, {"index", *REGISTRY})


def write(file: Path, text: str) -> None:
    """Write only what changed: Sphinx reads a page again when its file is new."""
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def playable(name: str) -> Policy:
    return make_policy(NOTES[name].settings or name)


def page(name: str) -> str:
    cls, note = REGISTRY[name], NOTES[name]
    plan = indented(str(playable(name).describe(arms=8, budget=800, horizon=200)))
    source = indented(cite(name).strip()) if cls.cites else "   ours: there is no paper"
    title = f"{name}: {cls.__name__}"
    return f"""{title}
{"=" * len(title)}

*{note.family}* Pass ``policy="{name}"``.

.. figure:: {name}.png
   :alt: the scores of five learners that {name} has seen, and which learner was pulled when

   400 pulls over the five curves of the paper's setting A, with noise of .01. The upper part
   shows how far each curve was pulled; the rest is dotted. The lower part shows which arm got
   each pull. Here the policy selects *{kept(name)}*; at the horizon *late* is the best.

When it fails
-------------

{note.fails}

The plan for 8 arms, 800 pulls and a horizon of 200
---------------------------------------------------

.. code-block:: text

{plan}

Plan, rating and formula
------------------------

.. autoclass:: {cls.__module__}.{cls.__name__}
   :no-members:

Cite
----

.. code-block:: text

{source}
"""


def indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.splitlines())


def index() -> str:
    rows = "\n".join(
        f"   * - :doc:`{name} <{name}>`\n     - {NOTES[name].family}\n     - {NOTES[name].fails}"
        for name in REGISTRY
    )
    tree = "\n".join(f"   {name}" for name in REGISTRY)
    return f"""Policies
========

A *policy* decides which learner is trained next and which is dropped. It consists of a plan and a
rating. Each page shows a run, the plan, the formula and when the policy fails. ``auto`` is
``foresight``. :doc:`/choose-a-policy` says which policy to use.

.. list-table::
   :header-rows: 1
   :widths: 15 40 45

   * - name
     - what it does
     - when it fails
{rows}

.. toctree::
   :hidden:

{tree}
"""


# --- the picture ---


def play(policy: Policy, noise: float = 0.01) -> tuple[Session, list[int], np.ndarray]:
    """Return a run on setting A: the session, the arm of each pull, and the rewards."""
    rng = np.random.default_rng(0)
    rewards = problem("paper-a").means(BUDGET) + rng.normal(0, noise, (len(NAMES), BUDGET))
    session, turns = Session(policy, arms=list(NAMES), budget=BUDGET), []
    while not session.over:
        arm = session.ask()
        turns.append(arm)
        session.tell(arm, rewards[arm, session.pulls[arm]])
    return session, turns, rewards


def kept(name: str) -> str:
    return play(playable(name))[0].recommend().name


def draw_run(policy: Policy, file: Path) -> None:
    _, turns, rewards = play(policy)
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(7.2, 4.6), height_ratios=(3, 1.3), layout="constrained"
    )
    for arm, (name, ink) in enumerate(zip(NAMES, INK, strict=True)):
        pulls = [turn for turn, pulled in enumerate(turns) if pulled == arm]
        n = len(pulls)
        above.plot(range(1, BUDGET + 1), rewards[arm], color=ink, lw=0.7, ls=":", alpha=0.7)
        above.plot(range(1, n + 1), rewards[arm, :n], color=ink, lw=2, label=f"{name} ({n})")
        below.vlines(pulls, arm + 0.1, arm + 0.9, color=ink, lw=0.8)
    above.set(xlabel="pulls of one arm", ylabel="reward", xlim=(0, BUDGET), ylim=(0, 1))
    above.legend(
        fontsize=8, frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.5, 1.13)
    )
    below.set(xlabel="pulls of the race", xlim=(0, BUDGET), ylim=(len(NAMES), 0))
    below.set_yticks(np.arange(len(NAMES)) + 0.5, NAMES, fontsize=8)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=110)
    plt.close(figure)
