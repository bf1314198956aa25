"""`TorchLearner`: the user's own parts, the same after a resume."""

import copy

import numpy as np
import pytest

from latebloomer import LocalRunner, check_learner, race
from latebloomer.errors import AllFailed, LearnerError, SettingError
from latebloomer.integrations.torch import TorchLearner
from tests.helpers.libraries import is_exact, library, refuses, two_classes

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
    layers = torch.nn.Linear(6, width), torch.nn.ReLU(), torch.nn.Dropout(0.3)
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 2))


def loader(**more):
    rows = torch.utils.data.TensorDataset(*TRAIN)
    return torch.utils.data.DataLoader(rows, batch_size=32, shuffle=True, **more)


def sampled(seed):
    rows, own = torch.utils.data.TensorDataset(*TRAIN), torch.Generator().manual_seed(seed)
    sampler = torch.utils.data.RandomSampler(rows, generator=own)
    return torch.utils.data.DataLoader(rows, batch_size=32, sampler=sampler)


def parts(width=8, seed=1, optimizer=torch.optim.AdamW):
    """A model and its optimizer."""
    torch.manual_seed(seed)
    model = net(width)
    return model, optimizer(model.parameters(), lr=0.02)


def learner(width=8, seed=1, loading=loader, schedule=None, optimizer=torch.optim.AdamW, **more):
    model, optimizer = parts(width, seed, optimizer)
    if schedule is not None:
        more["scheduler"] = schedule(optimizer)
    return TorchLearner(model, optimizer, loading(), LOSS, loss_of, **{"maximize": False} | more)


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
    model, optimizer = parts()
    scheduler = cosine(optimizer)
    batches, losses = loader(), []
    for _ in range(3):
        model.train()
        for X, y in batches:
            optimizer.zero_grad()
            LOSS(model(X), y).backward()
            optimizer.step()
        scheduler.step()
        losses.append(-loss_of(model.eval()))
    assert [one.pull() for _ in range(3)] == losses
    again = learner(schedule=cosine)
    assert again.pull(steps=3) == losses[-1] and again.steps == 3


WAYS = {
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
    "a generator of the sampler's own": {"loading": lambda: sampled(7), "batches": 5},
    "mixed precision": {
        "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
        "scaler": torch.amp.GradScaler("cpu", init_scale=8.0),
    },
    "workers": {"loading": lambda: loader(num_workers=1)},
    "a group of gradients": {
        "accumulate": 4, "batches": 3, "schedule": one_cycle, "schedule_by": "batch",
    },
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_learner_is_the_same_bit_for_bit(way):
    def build():
        own = {k: copy.deepcopy(v) if k == "scaler" else v for k, v in WAYS[way].items()}
        return learner(**own)

    is_exact(build, pulls=4)


def test_another_learner_in_between_changes_nothing():
    scores = [one.pull() for one in [learner()] * 3]
    one, other = learner(), learner(16)
    assert [(one.pull(), other.pull(), torch.rand(9))[0] for _ in range(3)] == scores
    drawn = []
    for pulls in (0, 1):  # nor does a learner change the numbers of others
        torch.manual_seed(5)
        np.random.seed(5)
        assert len([one.pull() for _ in range(pulls)]) == pulls
        drawn.append((torch.rand(1), np.random.rand()))
    assert drawn[0] == drawn[1]


def test_learners_may_share_a_loader_with_its_own_generator():
    own, shared = (loader(generator=torch.Generator().manual_seed(7)) for _ in range(2))
    alone, one, other = (learner(loading=lambda at=at: at) for at in (own, shared, shared))
    for _ in range(3):
        assert one.pull() == other.pull() == alone.pull()


class Counter:
    """State of a function that trains a batch."""

    batches = 0

    def state_dict(self):
        return {"batches": self.batches}

    def load_state_dict(self, state):
        self.batches = state["batches"]


def by_hand(every, registered=True, **more):
    """A learner with its own function, which steps the optimizer after `every` batches."""
    (model, optimizer), counter = parts(), Counter()

    def train(batch):
        (LOSS(model(batch[0]), batch[1]) / every).backward()
        counter.batches += 1
        if counter.batches % every == 0:
            optimizer.step()
            optimizer.zero_grad()

    own = {"train_batch": train, "state": counter if registered else None, "maximize": False}
    return TorchLearner(model, optimizer, loader(), None, loss_of, **own | more)


def test_a_function_trains_a_batch_and_gradients_are_averaged_over_several():
    assert by_hand(1).pull() == learner().pull()
    one, other = learner(accumulate=4, batches=4), by_hand(4, batches=4)  # beyond an epoch's end
    assert [one.pull() for _ in range(3)] == pytest.approx([other.pull() for _ in range(3)])


@pytest.mark.parametrize("registered", [True, False])
def test_the_state_of_a_function_that_trains_a_batch_can_be_registered(registered):
    assert check_learner(lambda: by_hand(4, registered, batches=3)).exact == registered


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
    expected = {}
    for _ in range(3 * EPOCH):  # the same training, batch by batch
        plain.pull()
        for name, part in plain.model.state_dict().items():
            before = expected.get(name, part)
            expected[name] = decay * before + (1 - decay) * part
    score = one.pull(steps=3)
    for name, part in one.averaged_model.state_dict().items():
        assert torch.allclose(part, expected[name], atol=1e-5), name
    assert score == -loss_of(one.averaged_model) == one.evaluate()
    assert one.last_scores == {"model": -loss_of(plain.model), "averaged_model": score}
    assert plain.averaged_model is None and set(plain.last_scores) == {"model"}


@pytest.mark.parametrize("more", [{}, {"norm": True}, {"norm": True, "batches": 3}], ids=str)
def test_an_average_is_exact_after_a_kill_and_does_not_change_the_training(more):
    is_exact(lambda: averaged(**more), pulls=3)
    one, plain = averaged(**more), averaged(ema=None, **more)
    one.pull(steps=3), plain.pull(steps=3)
    for mine, its in zip(one.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(mine, its)
    if more == {"norm": True}:  # statistics are those of the averaged weights
        first, norm, *_ = one.averaged_model
        assert torch.allclose(norm.running_mean, first(TRAIN[0]).mean(0), atol=0.05)
        assert not torch.allclose(norm.running_mean, one.model[1].running_mean, atol=1e-4)


WRONG = [  # positions of the arguments that are replaced, others by name, and what is said
    ({0: 3}, {}, r"model=3, but model must be a torch.nn.Module"),
    ({0: torch.nn.ReLU()}, {}, "has no parameters"),
    ({1: "adam"}, {}, "optimizer='adam', but optimizer must be one"),
    ({2: iter([])}, {}, "but loader must be a DataLoader"),
    ({2: []}, {"batches": 3}, r"loader=\[\] returned no batch"),  # when it is used
    ({4: "accuracy"}, {}, "but metric must be a function"),
    ({3: None}, {"train_batch": print, "state": 3}, r"state=3, but state must be an object with"),
    ({3: None}, {}, "give loss, or loss=None and train_batch"),
    (
        {3: None},
        {"train_batch": print, "accumulate": 2},
        "accumulate= would have no effect: train_",
    ),
    (
        {3: None},
        {"train_batch": print, "autocast": print, "scaler": 1, "clip": 1.0},
        "autocast= and scaler= and clip= would have no effect",
    ),
    ({}, {"clip": 0.0}, r"clip=0\.0, but clip must be above 0"),
    (
        {2: [{"x": 1}]},
        {},
        r"batch=\{'x': 1\}, but batch must be a dict with an argument of forward",
    ),
    ({}, {"schedule_by": "step"}, "schedule_by='step', but schedule_by must be 'epoch'"),
    ({}, {"batches": 0}, "batches=0, but batches must be at least 1"),
    ({}, {"maximize": "no"}, "maximize='no', but maximize must be True or False"),
    (
        {2: [3]},
        {},
        "batch=3, but batch must be .inputs, targets. or a dict, unless you give train_",
    ),
    ({}, {"ema": 0.02}, r"ema=0\.02 needs the length of the full training"),
    ({}, {"ema": 2, "full_steps": 50}, r"ema=2, but ema must be in \(0, 1\)"),
]


@pytest.mark.parametrize(("places", "more", "said"), WRONG, ids=[said for *_, said in WRONG])
def test_what_is_wrong_is_said_in_one_line(places, more, said):
    given = dict(enumerate([*parts(), loader(), LOSS, loss_of])) | places
    refuses(
        (LearnerError, SettingError), said, lambda: TorchLearner(*given.values(), **more).pull()
    )


OneCycleLR = torch.optim.lr_scheduler.OneCycleLR


def warm_cosine(optimizer, steps):
    kinds = torch.optim.lr_scheduler
    warm, then = (
        kinds.LinearLR(optimizer, 0.1, 1, steps // 10),
        kinds.CosineAnnealingLR(optimizer, steps - steps // 10),
    )
    return kinds.SequentialLR(optimizer, [warm, then], [steps // 10])


@pytest.mark.parametrize(
    "schedule",
    [
        lambda optimizer: OneCycleLR(optimizer, 0.1, epochs=10, steps_per_epoch=EPOCH),
        lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10 * EPOCH),
        lambda optimizer: warm_cosine(optimizer, 10 * EPOCH),
    ],
)
def test_a_schedule_that_is_made_for_batches_is_not_stepped_by_epochs(schedule):
    said = r"is 70 steps long, but .* steps it 10 times .* Give schedule_by='batch'"
    refuses(SettingError, said, learner, schedule=schedule, full_steps=10)
    learner(schedule=schedule, full_steps=10, schedule_by="batch")
    learner(schedule=schedule, full_steps=40)  # fits neither: the user's choice
    refuses(SettingError, "Give schedule_by='epoch'", learner, schedule=cosine, full_steps=30,
            schedule_by="batch")  # fmt: skip


def test_gradients_are_clipped_as_in_a_plain_loop():
    one, (model, optimizer) = (
        learner(clip=0.1, optimizer=torch.optim.SGD),
        parts(optimizer=torch.optim.SGD),
    )
    one.pull()
    model.train()
    for X, y in loader():
        optimizer.zero_grad()
        LOSS(model(X), y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    assert one.evaluate() == -loss_of(model.eval())
    free = learner(optimizer=torch.optim.SGD)
    assert free.pull() != one.evaluate()


def plateau(optimizer, mode="min"):
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode, factor=0.1, patience=0)


def test_a_plateau_lowers_the_learning_rate_by_the_metric_however_pulls_are_made():
    values = iter([3.0, 2.0, 2.5, 1.0, 4.0, 5.0])  # the third, fifth and sixth are no better

    def build(seen):
        model, optimizer = parts()
        return TorchLearner(
            model, optimizer, loader(), LOSS, lambda model: next(seen),
            scheduler=plateau(optimizer), maximize=False,
        ), optimizer  # fmt: skip

    one, optimizer = build(values)
    rates = []
    for _ in range(6):
        one.pull()
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.02, 0.02, 2e-3, 2e-3, 2e-4, 2e-5])
    is_exact(lambda: learner(schedule=plateau), pulls=3)
    apart, together = learner(schedule=plateau), learner(schedule=plateau)
    assert [apart.pull() for _ in range(6)][-1] == together.pull(6)
    refuses(SettingError, "Give it mode='max'", learner, schedule=plateau, maximize=True)


def test_a_batch_may_be_a_dict_whose_entries_the_model_names():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            return self.net(x)

    def as_dict(rows):
        X, y = torch.utils.data.default_collate(rows)
        return {"x": X, "labels": y, "ids": ["not a tensor"] * len(y)}

    torch.manual_seed(1)
    model = Named()
    one = TorchLearner(
        model, torch.optim.AdamW(model.parameters(), lr=0.02), loader(collate_fn=as_dict),
        lambda outputs, batch: LOSS(outputs, batch["labels"]), loss_of, maximize=False,
    )  # fmt: skip
    assert one.pull() == learner().pull()


def test_learners_that_train_the_same_weights_fail_and_say_why():
    torch.manual_seed(0)
    backbone = net()

    def tuned(rate):
        def build(seed):
            model = torch.nn.Sequential(backbone, torch.nn.Linear(2, 2))
            return TorchLearner(
                model, torch.optim.SGD(model.parameters(), rate), loader(), LOSS, loss_of,
                maximize=False,
            )  # fmt: skip

        return build

    with pytest.raises(AllFailed, match=r"trained by another learner .* copy\.deepcopy"):
        race({"slow": tuned(1e-5), "quick": tuned(0.01)}, 12, journal=None, progress=False)
    for parameter in backbone.parameters():
        parameter.requires_grad_(False)  # a frozen part may be shared
    backbone.eval()
    race({"slow": tuned(1e-5), "quick": tuned(0.01)}, 12, journal=None, progress=False)


def test_a_learner_that_begins_with_weights_of_another_fails_at_its_first_pull():
    shared = net()

    def tuned(rate):
        optimizer = torch.optim.SGD(shared.parameters(), rate)
        return lambda: TorchLearner(shared, optimizer, loader(), LOSS, loss_of, maximize=False)

    learners = {"first": tuned(0.01), "second": tuned(0.1)}
    with pytest.raises(AllFailed, match=r"second: pull 1 failed twice: .* by another learner"):
        race(learners, 2, policy="rr", journal=None, progress=False)


def test_a_learner_of_a_later_race_may_train_on_what_won_before():
    first = learner()
    runner = LocalRunner()

    def race_of(one):
        return race({"one": one, "other": lambda: learner()}, 4, policy="rr", journal=None,
                    progress=False, runner=runner)  # fmt: skip

    assert race_of(first).pulls["one"] == 2
    optimizer = torch.optim.SGD(first.model.parameters(), 0.01)
    second = TorchLearner(first.model, optimizer, loader(), LOSS, loss_of, maximize=False)
    assert race({"other": lambda: learner(), "one": second}, 4, policy="rr", journal=None,
                progress=False, runner=runner).pulls["one"] == 2  # fmt: skip


def test_learners_that_share_an_optimizer_fail_and_say_why():
    nets = {name: net() for name in "ab"}
    optimizer = torch.optim.SGD([p for one in nets.values() for p in one.parameters()], 0.01)
    learners = {
        name: lambda own=own: TorchLearner(
            own, optimizer, loader(), LOSS, loss_of, maximize=False, full_steps=5
        )
        for name, own in nets.items()
    }
    with pytest.raises(AllFailed, match="its model or optimizer is trained by another learner"):
        race(learners, 10, journal=None, progress=False)


def test_a_model_may_be_trained_further_by_another_learner():
    first = learner()
    first.pull()
    optimizer = torch.optim.SGD(first.model.parameters(), 0.01)
    second = TorchLearner(first.model, optimizer, loader(), LOSS, loss_of, maximize=False)
    assert [second.pull() for _ in range(2)]
    refuses(LearnerError, "trained by another learner", first.pull)
    refuses(LearnerError, "trained by another learner", second.pull)
