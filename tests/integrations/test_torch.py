"""`TorchLearner`: the user's own parts, the same after a resume."""

import copy

import numpy as np
import pytest
from libraries import ends_as_if_never_killed, library, two_classes

from latebloomer import check_learner, race
from latebloomer.errors import LearnerError, SettingError
from latebloomer.integrations.torch import TorchLearner

torch = library("torch")

TRAIN, VALID = (tuple(map(torch.from_numpy, part)) for part in two_classes())
LOSS = torch.nn.CrossEntropyLoss()
EPOCH = 7  # batches of 32 rows


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    yield
    # What workers shared is let go of now: at the end of the process torch complains of it.
    torch.multiprocessing.reductions.shared_cache.clear()


def loss_of(model):
    X, y = VALID
    return LOSS(model(X), y).item()


def net(width=8):
    return torch.nn.Sequential(
        torch.nn.Linear(6, width),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(width, 2),
    )


def loader(**more):
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*TRAIN), batch_size=32, shuffle=True, **more
    )


def learner(width=8, seed=1, loading=loader, schedule=None, optimizer=torch.optim.AdamW, **more):
    torch.manual_seed(seed)
    model = net(width)
    optimizer = optimizer(model.parameters(), lr=0.02)
    if schedule is not None:
        more["scheduler"] = schedule(optimizer)
    settings = {"maximize": False} | more
    return TorchLearner(model, optimizer, loading(), LOSS, loss_of, **settings)


def learners():
    return {
        "narrow": lambda seed: learner(2, seed),
        "wide": lambda seed: learner(16, seed, schedule=cosine, full_steps=30),
        "by batches": lambda seed: learner(8, seed, batches=3),
    }


def cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)


def one_cycle(optimizer):
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=100 * EPOCH)


def test_a_step_is_an_epoch_of_a_plain_loop_bit_for_bit():
    one = learner(schedule=cosine)
    torch.manual_seed(1)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    scheduler = cosine(optimizer)
    batches, losses = loader(), []
    for _ in range(3):
        model.train()
        for X, y in batches:
            optimizer.zero_grad()
            LOSS(model(X), y).backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        losses.append(-loss_of(model))
    assert [one.pull() for _ in range(3)] == losses
    again = learner(schedule=cosine)
    assert again.pull(steps=3) == losses[-1] and again.steps == 3


WAYS = {
    "epochs": {},
    "batches across epochs": {"batches": 3},
    "a whole epoch of batches": {"batches": EPOCH},
    "cosine": {"schedule": cosine},
    "one cycle by batch": {"schedule": one_cycle, "schedule_by": "batch", "batches": 4},
    "steps in a list": {
        "schedule": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [2, 4]),
        "optimizer": torch.optim.SGD,
    },
    "a generator of the loader's own": {
        "loading": lambda: loader(generator=torch.Generator().manual_seed(7)), "batches": 5,
    },
    "mixed precision": {
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
        "scaler": torch.amp.GradScaler("cpu", init_scale=8.0),
    },
    "workers": {"loading": lambda: loader(num_workers=1)},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_learner_is_the_same_bit_for_bit(way):
    settings = WAYS[way]

    def build():
        own = {k: copy.deepcopy(v) if k == "scaler" else v for k, v in settings.items()}
        return learner(**own)

    check = check_learner(build, pulls=4)
    assert check.saves and check.exact, str(check)


def test_another_learner_in_between_changes_nothing():
    scores = [one.pull() for one in [learner()] * 3]
    one, other = learner(), learner(16)
    assert [(one.pull(), other.pull(), torch.rand(9))[0] for _ in range(3)] == scores


def test_the_random_numbers_of_others_stay_as_they_are():
    one = learner()
    torch.manual_seed(5)
    np.random.seed(5)
    expected = torch.rand(1), np.random.rand()
    torch.manual_seed(5)
    np.random.seed(5)
    one.pull()
    assert (torch.rand(1), np.random.rand()) == expected


def test_a_race_killed_and_resumed_ends_the_same(tmp_path):
    verdict = ends_as_if_never_killed(__file__, learners, tmp_path)
    assert isinstance(verdict.learner.model, torch.nn.Module)


def test_a_full_training_ends_with_its_schedule():
    one = learner(
        schedule=lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=4), full_steps=4
    )
    one.pull(steps=3)
    one.pull(steps=3)
    assert one.steps == 4
    with pytest.raises(StopIteration):
        one.pull()


def test_a_function_of_the_users_own_trains_a_batch():
    torch.manual_seed(1)
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

    def train(batch):
        X, y = batch
        optimizer.zero_grad()
        LOSS(model(X), y).backward()
        optimizer.step()

    one = TorchLearner(
        model, optimizer, loader(), None, loss_of, train_batch=train, maximize=False
    )
    assert one.pull() == learner().pull()


def plain_accumulation(groups, every=4):
    """Return the losses of a loop that averages gradients over `every` batches."""
    torch.manual_seed(1)
    model, count, losses = net(), 0, []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    batches = loader()
    while len(losses) < groups:
        model.train()
        for X, y in batches:  # a group may reach into the next epoch
            (LOSS(model(X), y) / every).backward()
            count += 1
            if count % every == 0:
                optimizer.step()
                optimizer.zero_grad()
                losses.append(-loss_of(model.eval()))
                model.train()
    return losses[:groups]


def test_gradients_are_averaged_over_several_batches():
    one = learner(accumulate=4, batches=4)
    assert [one.pull() for _ in range(3)] == pytest.approx(plain_accumulation(3), abs=1e-6)


def test_gradient_accumulation_is_exact_after_a_kill_inside_a_group():
    for scheduled in (None, one_cycle):
        check = check_learner(
            lambda: learner(accumulate=4, batches=3, schedule=scheduled, schedule_by="batch"),  # noqa: B023
            pulls=3,
        )
        assert check.saves and check.exact, str(check)


class Counter:
    """State of a function that trains a batch."""

    def __init__(self):
        self.batches = 0

    def state_dict(self):
        return {"batches": self.batches}

    def load_state_dict(self, state):
        self.batches = state["batches"]


@pytest.mark.parametrize("registered", [True, False])
def test_the_state_of_a_function_that_trains_a_batch_can_be_registered(registered):
    def build():
        torch.manual_seed(1)
        model, counter = net(), Counter()
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)

        def train(batch):
            LOSS(model(batch[0]), batch[1]).backward()
            counter.batches += 1
            if counter.batches % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()

        more = {"state": counter} if registered else {}
        return TorchLearner(
            model, optimizer, loader(), None, loss_of, train_batch=train, batches=3, **more
        )

    assert check_learner(build).exact == registered


# --- averaged weights ---


def averaged(norm=False, **more):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(6, 8), *([torch.nn.BatchNorm1d(8)] if norm else [])]
    model = torch.nn.Sequential(*layers, torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    given = {"full_steps": 50, "ema": 0.02, "maximize": False} | more
    return TorchLearner(model, optimizer, loader(), LOSS, loss_of, **given)


def test_the_score_is_that_of_an_exponential_moving_average_of_the_weights():
    one, plain = averaged(), averaged(ema=None, batches=1)
    decay = 1 - 1 / (0.02 * 50 * EPOCH)  # a memory of 2 % of the optimizer's steps
    expected = None
    for _ in range(3 * EPOCH):  # the same training, batch by batch
        plain.pull()
        now = {name: part.clone() for name, part in plain.model.state_dict().items()}
        expected = now if expected is None else {
            name: decay * expected[name] + (1 - decay) * now[name] for name in now
        }  # fmt: skip
    score = one.pull(steps=3)
    for name, part in one.averaged_model.state_dict().items():
        assert torch.allclose(part, expected[name], atol=1e-5), name
    assert score == -loss_of(one.averaged_model) == one.evaluate()
    assert one.last_scores == {"model": -loss_of(plain.model), "averaged_model": score}
    assert plain.averaged_model is None and set(plain.last_scores) == {"model"}


@pytest.mark.parametrize("more", [{}, {"norm": True}, {"norm": True, "batches": 3}], ids=str)
def test_an_average_is_exact_after_a_kill_and_does_not_change_the_training(more):
    check = check_learner(lambda: averaged(**more), pulls=3)
    assert check.saves and check.exact, str(check)
    one, plain = averaged(**more), averaged(ema=None, **more)
    one.pull(steps=3), plain.pull(steps=3)
    for mine, its in zip(one.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, its)


def test_the_statistics_of_batch_norm_are_those_of_the_averaged_weights():
    one = averaged(norm=True)
    one.pull(steps=2)
    first, norm = one.averaged_model[0], one.averaged_model[1]
    with torch.no_grad():
        hidden = first(TRAIN[0])
    assert torch.allclose(norm.running_mean, hidden.mean(0), atol=0.05)
    assert not torch.allclose(norm.running_mean, one.model[1].running_mean, atol=1e-4)


def test_an_average_needs_the_length_of_the_full_training():
    with pytest.raises(SettingError, match=r"ema=0\.02 is a fraction of the full training, whose"):
        averaged(full_steps=None)
    with pytest.raises(SettingError, match=r"ema=2, but ema must be in \(0, 1\)"):
        averaged(ema=2)


def test_it_races_as_an_object_too():
    given = {"narrow": learner(2), "wide": learner(16)}
    verdict = race(given, budget=8, journal=None, progress=False)
    assert verdict.learner is given[verdict.name]


def test_a_checkpoint_of_another_learner_is_refused(tmp_path):
    learner(schedule=cosine).save(tmp_path)
    with pytest.raises(LearnerError, match=r"settings: parts was \[.*'scheduler'\], is"):
        learner().load(tmp_path)


def test_what_is_wrong_is_said_in_one_line():
    model, batches = net(), loader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for wrong, said in [
        ((3, optimizer, batches, LOSS, loss_of), r"model=3, but model must be a torch.nn.Module"),
        ((torch.nn.ReLU(), optimizer, batches, LOSS, loss_of), "has no parameters"),
        ((model, "adam", batches, LOSS, loss_of), "optimizer='adam', but optimizer must be one"),
        ((model, optimizer, iter(batches), LOSS, loss_of), "but loader must be a DataLoader"),
        ((model, optimizer, batches, LOSS, "accuracy"), "but metric must be a function"),
    ]:
        with pytest.raises(LearnerError, match=said):
            TorchLearner(*wrong)
    with pytest.raises(LearnerError, match=r"loader=\[\] returned no batch"):
        TorchLearner(model, optimizer, [], LOSS, loss_of, batches=3).pull()
    with pytest.raises(SettingError, match="give loss, or loss=None and train_batch"):
        TorchLearner(model, optimizer, batches, None, loss_of)
    with pytest.raises(SettingError, match="schedule_by='step', but schedule_by must be 'epoch'"):
        TorchLearner(model, optimizer, batches, LOSS, loss_of, schedule_by="step")
    with pytest.raises(SettingError, match="accumulate=2 has no effect on train_batch"):
        TorchLearner(model, optimizer, batches, None, loss_of, train_batch=print, accumulate=2)
    with pytest.raises(
        LearnerError, match=r"state=3, but state must be an object with state_dict\(\)"
    ):
        TorchLearner(model, optimizer, batches, None, loss_of, train_batch=print, state=3)
    with pytest.raises(SettingError, match="batches=0, but batches must be at least 1"):
        TorchLearner(model, optimizer, batches, LOSS, loss_of, batches=0)
