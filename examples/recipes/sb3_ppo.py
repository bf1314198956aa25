"""Reinforcement learning with Stable-Baselines3: a step is 256 time steps of PPO.

The score is the mean return of three episodes with fixed seeds, without exploration. A checkpoint
is the library's own file; PPO draws from PyTorch's and NumPy's generators, so a restored learner
is near the one that was saved, not the same bit for bit.
"""

import gymnasium
import numpy as np
from stable_baselines3 import PPO

from latebloomer import full_training, race

STEPS = 256


class Agent:
    def __init__(self, rate, seed):
        self.model = PPO(
            "MlpPolicy", "CartPole-v1", learning_rate=rate, n_steps=STEPS, seed=seed % 2**31,
            device="cpu",
        )  # fmt: skip

    def pull(self):
        self.model.learn(STEPS, reset_num_timesteps=False)
        return self.evaluate()

    def evaluate(self):
        return float(np.mean([self._episode(seed) for seed in range(3)]))

    def _episode(self, seed):
        world = gymnasium.make("CartPole-v1")
        seen, _ = world.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            action, _ = self.model.predict(seen, deterministic=True)
            seen, reward, ended, cut, _ = world.step(action)
            total, done = total + float(reward), ended or cut
        return total

    def save(self, folder):
        self.model.save(folder / "ppo.zip")

    def load(self, folder):
        self.model = PPO.load(folder / "ppo.zip", env=self.model.get_env(), device="cpu")


def agent(rate):
    return full_training(20)(lambda seed: Agent(rate, seed))


LEARNERS = {"slow": agent(3e-5), "usual": agent(3e-4), "fast": agent(3e-3)}

if __name__ == "__main__":
    print(race(LEARNERS, trainings=1.5))
