"""Unchanged scripts of training libraries as programs of a race that is killed twice."""

import signal
import subprocess
import sys
import textwrap

import pytest

from latebloomer import Command, resume
from tests.helpers.libraries import library

# On a busy machine quick scripts train ahead of their pulls, and imports take a minute.
pytestmark = [
    pytest.mark.filterwarnings("ignore:the first .* arrived at once"),
    pytest.mark.filterwarnings("ignore:.* has run for 60 s"),
]
TORCH = """
    import sys, torch
    rate, seed = float(sys.argv[1]), int(sys.argv[2])
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    X = torch.randn(256, 8)
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).long()
    rows = torch.utils.data.TensorDataset(X[:192], y[:192])
    loader = torch.utils.data.DataLoader(rows, 32, shuffle=True, num_workers=1,
                                         persistent_workers=True)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(net.parameters(), rate)
    loss = torch.nn.CrossEntropyLoss()
    if __name__ == "__main__":
        for epoch in range(1, 21):
            for n, (a, b) in enumerate(loader, 1):
                optimizer.zero_grad()
                loss(net(a), b).backward()
                optimizer.step()
                sys.stderr.write(f"\\r{n}/6 |{'#' * n}")
            with torch.no_grad():
                value = (net(X[192:]).argmax(1) == y[192:]).float().mean()
            print(f"\\repoch {epoch}: val_acc={value:.4f}")
"""
XGBOOST = """
    import pathlib, sys, numpy as np, xgboost
    depth, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    train, valid = xgboost.DMatrix(X[:200], y[:200]), xgboost.DMatrix(X[200:], y[200:])
    saved, booster = folder / "model.ubj", None
    if saved.exists():
        booster = xgboost.Booster(model_file=saved)
    for n in range(booster.num_boosted_rounds() if booster else 0, 40):
        params = {"max_depth": depth, "objective": "binary:logistic", "nthread": 1}
        booster = xgboost.train(params, train, 1, xgb_model=booster)
        draft = folder / "draft.ubj"
        booster.save_model(draft)
        draft.replace(saved)
        value = ((booster.predict(valid) > 0.5) == y[200:]).mean()
        print(f"round={n + 1} acc={value:.4f}", flush=True)
"""
TRANSFORMERS = """
    import os, pathlib, sys
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch, transformers
    rate, folder, steps = float(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    ids = torch.randint(5, 30, (96, 8), generator=torch.Generator().manual_seed(0))
    rows = [{"input_ids": x, "labels": int(x[0] > x[1])} for x in ids]
    transformers.set_seed(0)
    config = transformers.BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1,
                                     num_attention_heads=2, intermediate_size=16)
    arguments = transformers.TrainingArguments(
        str(folder), max_steps=steps, learning_rate=rate, lr_scheduler_type="constant",
        save_strategy="steps", save_steps=steps, save_total_limit=1, report_to="none",
        use_cpu=True, per_device_train_batch_size=16)
    trainer = transformers.Trainer(transformers.BertForSequenceClassification(config), arguments,
                                   train_dataset=rows[:64], eval_dataset=rows[64:])
    trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))
    print("eval_loss:", trainer.evaluate()["eval_loss"])
"""
DRIVER = """
import os, signal, sys
from latebloomer import Command, race, resume
from latebloomer.session.events import ScoreReported
from setup import commands, settings

at = int(sys.argv[1])
def kill(event, view):
    if isinstance(event, ScoreReported) and view.spent == at:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    own = {"journal": "r.db", "if_exists": "resume", "progress": False, "callbacks": [kill]}
    race(commands(), **own, **settings)
"""
CASES = {  # a script, how it is called with two values, the race, when it is killed
    "torch": (TORCH, {"run": "{v} 1", "score": "val_acc"}, (0.0001, 0.03), {"budget": 12}, (3, 9)),
    "xgboost": (
        XGBOOST, {"run": "{v} {{folder}}", "score": "acc", "step": "round"}, (1, 4),
        {"budget": 16}, (5, 11),
    ),
    "transformers": (
        TRANSFORMERS, {"run": "{v} {{folder}} {{steps}}", "score": "eval_loss"}, (1e-5, 0.01),
        {"trainings": 1.5, "full_steps": 12, "pulls_per_training": 3, "maximize": False}, (2, 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_unchanged_script_races_on_after_two_kills(name, tmp_path):
    library(name)
    script, how, values, settings, kills = CASES[name]
    (tmp_path / "train.py").write_text(textwrap.dedent(script))
    words = {str(v): f"{sys.executable} train.py {how['run'].format(v=v)}" for v in values}
    more = {key: value for key, value in how.items() if key != "run"} | {"cwd": str(tmp_path)}
    (tmp_path / "setup.py").write_text(
        "from latebloomer import Command\n"
        f"words, more, settings = {words!r}, {more!r}, {settings!r}\n"
        "def commands():\n"
        "    return {name: Command(run, **more) for name, run in words.items()}\n"
    )
    (tmp_path / "drive.py").write_text(DRIVER)
    for at in kills:
        done = subprocess.run([sys.executable, "-W", "ignore", "drive.py", str(at)], cwd=tmp_path)
        assert done.returncode == -signal.SIGKILL
    commands = {name: Command(run, **more) for name, run in words.items()}
    verdict = resume(tmp_path / "r.db", commands, progress=False)
    assert verdict.over and verdict.spent == sum(verdict.pulls.values())
    assert all(one.state != "failed" for one in verdict.learners)
    plain = {name: Command(run, **more) for name, run in words.items()}
    for arm, command in plain.items():
        whole = command(0)
        each = settings.get("full_steps", 1) // settings.get("pulls_per_training", 1) or 1
        assert verdict.curve(arm) == [whole.pull(each) for _ in range(verdict.pulls[arm])]
