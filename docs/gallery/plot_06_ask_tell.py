"""
Keep your own loop with ask and tell
====================================

A session asks for an arm, and you report its score. Here plain NumPy trains polynomials by
gradient descent.
"""

import matplotlib.pyplot as plt
import numpy as np

from latebloomer import Session

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, 300)
y = np.sin(4 * x) + rng.normal(0, 0.1, 300)
DEGREES = (1, 3, 5, 9)
columns = {d: np.polynomial.chebyshev.chebvander(x, d) for d in DEGREES}
weights = {d: np.zeros(d + 1) for d in DEGREES}


def train(degree):
    """One step of gradient descent on 200 points; minus the error on the other 100."""
    X, w = columns[degree], weights[degree]
    w -= 0.05 * X[:200].T @ (X[:200] @ w - y[:200]) / 200
    return -np.mean((X[200:] @ w - y[200:]) ** 2)


session = Session("auto", arms=[f"degree {d}" for d in DEGREES], budget=1200)
seen = {arm: [] for arm in range(len(DEGREES))}
while not session.over:
    arm = session.ask()
    score = train(DEGREES[arm])
    session.tell(arm, score)
    seen[arm].append(score)
print("keep", session.recommend().name)
print(session.explain("degree 1"))

# %%
# The curves of degrees 5 and 9 lie on each other.

for arm, scores in seen.items():
    plt.plot(scores, label=session.names[arm])
plt.xlabel("pulls of each arm")
plt.ylabel("score: minus the mean squared error")
plt.legend(frameon=False)
plt.show()
