"""JAX with Flax and optax: a generator trains one epoch and yields the score and the parameters.

JAX has no hidden random state, so the curves depend on the seed alone. A generator cannot be
saved: after a kill its pulls are repeated, and give the same scores.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from latebloomer import full_training, race

EPOCHS, BATCH = 30, 32
X = jax.random.normal(jax.random.key(0), (384, 8))
Y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(jnp.int32)


class Net(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(nn.relu(nn.Dense(self.width)(x)))


def net(width, rate):
    @full_training(EPOCHS)
    def train(seed):
        key, start = jax.random.split(jax.random.key(seed % 2**31))
        model, optimizer = Net(width), optax.adamw(rate)
        params = model.init(start, X[:1])
        state = optimizer.init(params)

        @jax.jit
        def step(params, state, rows):
            def loss(params):
                outputs = model.apply(params, X[rows])
                return optax.softmax_cross_entropy_with_integer_labels(outputs, Y[rows]).mean()

            changes, state = optimizer.update(jax.grad(loss)(params), state, params)
            return optax.apply_updates(params, changes), state

        while True:
            key, order = jax.random.split(key)
            for rows in jax.random.permutation(order, 256).reshape(-1, BATCH):
                params, state = step(params, state, rows)
            right = model.apply(params, X[256:]).argmax(1) == Y[256:]
            yield float(right.mean()), params

    return train


LEARNERS = {"narrow": net(4, 1e-2), "wide": net(64, 1e-2), "slow": net(64, 1e-4)}

if __name__ == "__main__":
    print(race(LEARNERS, trainings=1.5))
