"""What a pull with PyTorch, Lightning, Transformers and Keras costs more than a plain epoch.

    python -m measurements.trainer_overhead [library ...]

CPU milliseconds on one thread, the best of three trainings of 20 epochs. The plain training is one
call of the library's own, and both score the model after each epoch; a pull is one epoch.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

EPOCHS, REPEATS = 20, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 32)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=4000) > 0).astype(np.int64)
IDS = RNG.integers(2, 64, size=(480, 16))
ROWS = [{"input_ids": row.tolist(), "labels": int(row[0] > row[1])} for row in IDS]
Way = tuple[Callable[[], Any], Callable[[], Any]]  # one long training; the same as a learner


def torch_parts() -> tuple[Any, Any, Any]:
    """Return a net, a loader to train on and one to score on."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = torch.nn.Linear(32, 128), torch.nn.ReLU(), torch.nn.Linear(128, 2)
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    parts = torch.utils.data.Subset(rows, range(3000)), torch.utils.data.Subset(rows, range(1000))
    loaders = (torch.utils.data.DataLoader(part, batch_size=64) for part in parts)
    return torch.nn.Sequential(*layers), *loaders


def accuracy(model: Any) -> float:
    import torch

    return float((model(torch.from_numpy(X[3000:])).argmax(1).numpy() == Y[3000:]).mean())


def torch_way() -> Way:
    import torch

    from latebloomer.integrations.torch import TorchLearner

    def parts() -> tuple[Any, ...]:
        net, train, _ = torch_parts()
        return net, torch.optim.AdamW(net.parameters()), train, torch.nn.CrossEntropyLoss()

    def plain() -> None:
        net, optimizer, train, loss = parts()
        for _ in range(EPOCHS):
            net.train()
            for inputs, targets in train:
                optimizer.zero_grad()
                loss(net(inputs), targets).backward()
                optimizer.step()
            net.eval()
            with torch.no_grad():
                accuracy(net)

    return plain, lambda: TorchLearner(*parts(), accuracy)


def lightning_way() -> Way:
    import lightning
    import torch

    from latebloomer.integrations.lightning import QUIET, LightningLearner

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Net(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net = net

        def training_step(self, batch: Any) -> Any:
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any) -> None:
            self.log("val_loss", self.training_step(batch))

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    def plain() -> None:
        net, *loaders = torch_parts()
        lightning.Trainer(**QUIET, accelerator="cpu", max_epochs=EPOCHS).fit(Net(net), *loaders)

    def learner() -> Any:
        net, *loaders = torch_parts()
        return LightningLearner(Net(net), *loaders, full_steps=EPOCHS, accelerator="cpu")

    return plain, learner


def transformers_way() -> Way:
    import transformers

    from latebloomer.integrations.transformers import HuggingFaceLearner

    transformers.logging.set_verbosity_error()

    def trainer(**more: Any) -> Any:
        transformers.set_seed(0)
        config = transformers.BertConfig(
            vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=64,
        )  # fmt: skip
        folder = TemporaryDirectory()
        arguments = transformers.TrainingArguments(
            folder.name, num_train_epochs=EPOCHS, per_device_train_batch_size=16, use_cpu=True,
            report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True, **more,
        )  # fmt: skip
        model = transformers.BertForSequenceClassification(config)
        made = transformers.Trainer(
            model, arguments, train_dataset=ROWS[:400], eval_dataset=ROWS[400:]
        )
        made.remove_callback(transformers.PrinterCallback)
        return made

    return lambda: trainer(eval_strategy="epoch").train(), lambda: HuggingFaceLearner(trainer())


def keras_way() -> Way:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    from latebloomer.integrations.keras import KerasLearner

    data = (X[:3000], Y[:3000]), (X[3000:], Y[3000:])

    def model() -> Any:
        keras.utils.set_random_seed(0)
        dense = keras.layers.Dense
        made = keras.Sequential([keras.Input((32,)), dense(128, "relu"), dense(2, "softmax")])
        made.compile("adam", "sparse_categorical_crossentropy")
        return made

    def plain() -> None:
        model().fit(*data[0], validation_data=data[1], epochs=EPOCHS, batch_size=64, verbose=0)

    return plain, lambda: KerasLearner(model(), *data, batch_size=64)


WAYS = {"torch": torch_way, "lightning": lightning_way, "transformers": transformers_way,
        "keras": keras_way}  # fmt: skip


def pulls(learner: Callable[[], Any]) -> None:
    """Train in pulls of one epoch."""
    made = learner()
    for _ in range(EPOCHS):
        made.pull()


def seconds(train: Callable[[], Any]) -> float:
    """Return the CPU seconds of the quickest training."""
    found = []
    for _ in range(REPEATS):
        began = process_time()
        train()
        found.append(process_time() - began)
    return min(found)


def main() -> None:
    warnings.simplefilter("ignore")
    print("| library | an epoch of one training | a pull | more |\n|---|---|---|---|")
    for name in sys.argv[1:] or WAYS:
        plain, learner = WAYS[name]()
        least, found = seconds(plain), seconds(partial(pulls, learner))
        cells = (f"{1000 * one / EPOCHS:.0f} ms" for one in (least, found))
        print(f"| {name} | {' | '.join(cells)} | {found / least - 1:+.0%} |", flush=True)


if __name__ == "__main__":
    main()
