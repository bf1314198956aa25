"""
Race six scikit-learn models on one budget
==========================================

Is a handwritten digit even or odd? Simple models quickly learn what a linear boundary can
separate; a deep net is behind at first. The race has a budget of five full trainings.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from latebloomer import RaceSearchCV

X, digit = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, digit % 2, test_size=500, random_state=0)
search = RaceSearchCV(
    {
        "bayes": GaussianNB(var_smoothing=0.01),
        "linear": SGDClassifier(loss="log_loss"),
        "forest": RandomForestClassifier(max_depth=6),
        "boosting": HistGradientBoostingClassifier(),
        "small net": MLPClassifier((8,)),
        "deep net": MLPClassifier((128, 128), max_iter=60),
    },
    trainings=5,
    random_state=0,
).fit(X, y)
print(search.best_name_, f"{search.score(X_test, y_test):.1%} of images that nobody has seen")

# %%
# The scores of every model, by pulls. A full training of any model is the same number of pulls.

search.verdict_.plot()
plt.show()

# %%
# When and why each model was dropped.

for row in search.verdict_.learners:
    print(f"{row.name:9} {row.why}")
