"""Train a small network on handwritten digits, print its accuracy: a script that knows no race."""

import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=32)
parser.add_argument("--rate", type=float, default=0.001)
parser.add_argument("--epochs", type=int, default=40)
parser.add_argument("--seed", type=int, default=0)
given = parser.parse_args()

X, y = load_digits(return_X_y=True)
X, X_val, y, y_val = train_test_split(X / 16, y, test_size=0.5, random_state=0)
net = MLPClassifier((given.width,), learning_rate_init=given.rate, random_state=given.seed)
for epoch in range(1, given.epochs + 1):
    net.partial_fit(X, y, classes=range(10))
    print(f"epoch {epoch}: loss {net.loss_:.4f}, val_acc={net.score(X_val, y_val):.4f}")
