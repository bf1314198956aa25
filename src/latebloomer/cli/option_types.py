"""All options, each defined once: type, check, help text, and panel of the help.

The parameters of a command are these types. An option that has another meaning in another command
has a second type here.
"""

from pathlib import Path
from typing import Annotated

from latebloomer.cli.option_checks import argument, choice, count, number, option, policies
from latebloomer.errors import MOST
from latebloomer.paper import AS_PUBLISHED, AS_WRITTEN
from latebloomer.policies.registry import MAIN
from latebloomer.racing.journal.journal_file import IF_EXISTS

PROGRAMS, BUDGET, POLICY, FILES = "Programs", "Budget", "Policy", "Files"
FAULTS, RAY, OUTPUT, OTHERS = "Faults", "Ray", "Output", None
KNOWN = f"auto, {', '.join(MAIN)}. `latebloomer policies` lists all."
PROBLEMS = (
    "paper-a, paper-b, imdb, lower-bound:K=9:beta=2:gap=0.1, theorem-4:K=9:beta=2, "
    "one-riser:K=16:T=800, random:FAMILY:K=10:seed=3 (FAMILY: F, exponential, power, piecewise, "
    "stationary or sshaped), or a file of curves (.npz, .csv, .parquet). All take :sigma=0.1, "
    ":noise=bernoulli or :noise=none. Or a Problem in a file, mine.py:NAME."
)
RUNNERS = ("local", "isolated", "ray")

# --- learners and programs ---

Learners = Annotated[
    str | None,
    argument(
        "LEARNERS",
        "Learners to race: `module:name` or `path/to/file.py:name`, a dict of learners "
        "or a function that returns one; or a .toml file that describes a race of "
        "programs.",
    ),
]
JournalAndLearners = Annotated[
    list[str],
    argument(
        "[JOURNAL] LEARNERS",
        "Journal of the race, if it is not the latest in races/; then the learners, as in `race`.",
    ),
]
Run = Annotated[
    list[str] | None,
    option(
        PROGRAMS,
        "A program to race, in place of LEARNERS: NAME='COMMAND'. Repeat for each program.",
    ),
]
RunAgain = Annotated[
    list[str] | None,
    option(PROGRAMS, "A program of the race: NAME='COMMAND', as in `race`; then omit LEARNERS."),
]
Score = Annotated[
    str | None,
    option(
        PROGRAMS,
        "Name of the score in what the programs print, or a regular expression with a group.",
    ),
]
ScoreAgain = Annotated[
    str | None, option(PROGRAMS, "Name of the score in what the programs print.")
]
Step = Annotated[
    str | None,
    option(
        PROGRAMS, "Name of the step in the same line. Default: the n-th score counts as step n."
    ),
]
StepAgain = Annotated[str | None, option(PROGRAMS, "Name of the step in the same line.")]
Finish = Annotated[
    bool,
    option(
        PROGRAMS, "Let the program that won run to its end, and show its output.", name="--finish"
    ),
]

# --- the budget ---

Trainings = Annotated[
    float | None,
    option(
        BUDGET,
        "Budget in full trainings. Give one of --trainings, --budget and --seconds.",
        number(),
    ),
]
Budget = Annotated[
    int | None,
    option(
        BUDGET,
        "Budget in pulls, over all learners. One pull is one step, or a fraction of a "
        "full training with --full-steps.",
        count(),
    ),
]
Seconds = Annotated[
    float | None, option(BUDGET, "Budget in seconds of wall-clock time.", number())
]
FullSteps = Annotated[
    str | None,
    option(
        BUDGET,
        "Steps in a full training: 200 for all, or net=3600,forest=200. Default: each "
        "learner's `full_steps` attribute.",
    ),
]
PullsPerTraining = Annotated[
    int | None,
    option(
        BUDGET,
        "Pulls in a full training. Default: 100, or the shortest training's steps if 10 to 99.",
        count(),
    ),
]
WinnerShare = Annotated[
    float,
    option(BUDGET, "Fraction of the budget reserved for training the winner further.", number()),
]
TotalTrainings = Annotated[
    float | None, option(BUDGET, "New total budget in full trainings.", number())
]
TotalBudget = Annotated[
    int | None,
    option(BUDGET, "New total budget in pulls, including pulls already spent.", count()),
]
TotalSeconds = Annotated[
    float | None,
    option(BUDGET, "New total time in seconds, including the time already spent.", number()),
]
FullStepsOfNew = Annotated[
    str | None, option(BUDGET, "Steps in a full training of the added learners, as in `race`.")
]
PlannedTrainings = Annotated[
    float | None,
    option(
        BUDGET, "Budget in full trainings of 100 pulls. Give --trainings or --budget.", number()
    ),
]
PlannedBudget = Annotated[
    int | None, option(BUDGET, "Budget in pulls, over all learners.", count())
]
ArmBudgets = Annotated[
    str, option(BUDGET, "Budget in pulls, over all arms; several separated by commas.")
]
BenchBudgets = Annotated[
    str | None,
    option(
        BUDGET,
        "Budgets in full trainings, separated by commas. Default: 1,2,4,8; in seconds 1,2,4.",
    ),
]

# --- the policy ---

PolicyName = Annotated[
    str,
    option(
        POLICY,
        "Rule that decides which learner trains next and which is dropped: NAME or "
        f"NAME:SETTING=VALUE,... of {KNOWN}",
        policies(),
    ),
]
PolicyNames = Annotated[
    str,
    option(
        POLICY,
        "Policies separated by commas, each NAME or NAME:SETTING=VALUE,..., or a class of a file, "
        f"mine.py:MyPolicy. NAME is one of: {KNOWN}",
        policies(files=True),
    ),
]
BenchPolicies = Annotated[
    str | None,
    option(
        POLICY,
        "Policies separated by commas, or all. Default: the usual ones.",
        policies(),
    ),
]
Baseline = Annotated[str, option(POLICY, "Policy to compare with.", policies())]
Horizon = Annotated[
    int | None,
    option(
        POLICY,
        "Pulls at which learners are compared. Default: the budget or a full training.",
        count(),
    ),
]
NewHorizon = Annotated[
    int | None, option(POLICY, "New number of pulls at which learners are compared.", count())
]
ArmHorizon = Annotated[
    int | None,
    option(POLICY, "Pulls per arm at which arms are compared. Default: each budget.", count()),
]
MinPulls = Annotated[
    int | None,
    option(
        POLICY,
        "Pulls every learner gets before any can be dropped. Default: 2 with policy auto, if the "
        "budget has four pulls for each.",
        count(),
    ),
]
Drops = Annotated[
    str | None,
    option(
        POLICY,
        "Which learner a race in seconds drops: worst (the lowest estimate) or waste (the largest "
        "gap times the seconds that it would still cost).",
        choice("worst", "waste"),
    ),
]
Stop = Annotated[
    str | None,
    option(
        POLICY,
        "Stop early. `certified`: once the winner is proved best (95 %).",
        choice("certified"),
    ),
]
Maximize = Annotated[
    bool,
    option(
        POLICY, "Whether higher scores are better, or lower ones.", name="--maximize/--minimize"
    ),
]
ScoreRange = Annotated[
    str | None,
    option(
        POLICY,
        "Lowest and highest possible score: 0,1; one of them may be empty: 0, or ,1. Default: the "
        "learners' `score_range` attributes.",
    ),
]
Seed = Annotated[
    int,
    option(POLICY, "Random seed for the policy and for learners that take a seed.", count(-MOST)),
]
RunsSeed = Annotated[int, option(POLICY, "Random seed.", count(0))]
Revive = Annotated[
    bool, option(POLICY, "Let dropped learners rejoin if the new plan would have kept them.")
]
Add = Annotated[list[str] | None, option(POLICY, "Name of a learner to add; repeat for several.")]

# --- files ---

Journal = Annotated[
    str, option(FILES, "Journal of every pull: a file, or a folder ending in / for a new file.")
]
IfExists = Annotated[
    str,
    option(
        FILES,
        "If the journal holds a race: error, resume, or new (a new file next to it).",
        choice(*IF_EXISTS),
    ),
]
Report = Annotated[Path | None, option(FILES, "Write an HTML report to this file.")]
Save = Annotated[Path | None, option(FILES, "Pickle the trained winner to this file.")]
ResultsFile = Annotated[
    Path | None, option(FILES, "Results file. If it exists, only missing runs are simulated.")
]
TableFile = Annotated[Path | None, option(FILES, "Write the table to this file.")]
PlotFile = Annotated[Path | None, option(FILES, "Plot error and regret here.")]
BenchFolder = Annotated[Path | None, option(FILES, "Folder for bench.md, .csv, .png.")]
FigureFolder = Annotated[Path, option(FILES, "Folder for the files.")]
ReportFile = Annotated[Path | None, option(FILES, "File to write. Default: next to the journal.")]
RepairedFile = Annotated[
    Path | None, option(FILES, "New file. Default: NAME.repaired.db next to the journal.")
]

# --- faults ---

Retries = Annotated[
    int,
    option(FAULTS, "Times to retry a failed pull before the learner counts as failed.", count(0)),
]
OtherRetries = Annotated[
    int | None,
    option(FAULTS, "Times to retry a failed pull before the learner counts as failed.", count(0)),
]
Timeout = Annotated[
    float | None,
    option(FAULTS, "Give up on a pull after this many seconds and count it as failed.", number()),
]
CheckpointEvery = Annotated[
    int | None,
    option(
        FAULTS,
        "Save each learner every N pulls. Default: when 20 s of its training would be lost.",
        count(),
    ),
]
Isolate = Annotated[
    bool,
    option(
        FAULTS,
        "Run each learner in its own process, so that a crash ends only that learner.",
        name="--isolate",
    ),
]
MaxInMemory = Annotated[
    int | None,
    option(
        FAULTS, "Maximum number of learners in memory; the others wait in checkpoints.", count()
    ),
]

LearnerThreads = Annotated[
    int | None,
    option(
        FAULTS,
        "Threads that native libraries may use for one learner. Default: their own number.",
        count(),
        name="--threads",
    ),
]

# --- the runner ---

RunnerName = Annotated[
    str,
    option(
        RAY,
        "Where pulls run: local (this process), isolated (one local process per "
        "learner) or ray (one Ray actor per learner).",
        choice(*RUNNERS),
    ),
]
OtherRunner = Annotated[
    str | None,
    option(
        RAY,
        "Where pulls run: local, isolated or ray. Default: as recorded, unless another "
        "option of the runner is given.",
        choice(*RUNNERS),
    ),
]
Engine = Annotated[
    str,
    option(
        RAY,
        "Where runs are simulated: local, or ray for tasks on a cluster.",
        choice("local", "ray"),
    ),
]
Address = Annotated[
    str | None,
    option(RAY, "Ray cluster: auto or ray://host:10001. Default: `RAY_ADDRESS`, or start one."),
]
Storage = Annotated[
    str | None,
    option(RAY, "Checkpoint folder or URL for all Ray nodes. Default: next to the journal."),
]
Cpus = Annotated[float, option(RAY, "CPUs for one learner.", number())]
Gpus = Annotated[float, option(RAY, "GPUs for one learner.", number())]

# --- output ---

Watch = Annotated[
    bool, option(OUTPUT, "Serve a live page on this machine and print its URL.", name="--watch")
]
Json = Annotated[bool, option(OUTPUT, "Print one JSON object.", name="--json")]
Quiet = Annotated[bool, option(OUTPUT, "Show no progress.", name="--quiet")]
Verbose = Annotated[
    bool,
    option(OUTPUT, "Print the full verdict: every learner, reason and warning.", name="--verbose"),
]
Follow = Annotated[
    bool,
    option(
        OUTPUT,
        "Redraw while the race runs; with --json, print one line for each change.",
        name="--follow",
    ),
]

# --- journals ---

LatestJournal = Annotated[
    Path | None,
    argument(
        "[JOURNAL]",
        "Journal, or a folder, of which the latest journal is used. Default: races/.",
    ),
]
DamagedJournal = Annotated[Path, argument("JOURNAL", "Journal of the race.")]
RacesFolder = Annotated[Path, argument("[FOLDER]", "Folder of the journals.")]
CleanUp = Annotated[
    bool,
    option(
        OTHERS,
        "Remove the checkpoints of all learners but the winners of finished races.",
        name="--clean",
    ),
]
WatchedPlace = Annotated[
    Path | None,
    argument(
        "[PLACE]",
        "Journal, or folder of journals. Default: races/ if it exists, else the current folder.",
    ),
]
Port = Annotated[int, option(OTHERS, "Port to listen on; 0 picks a free one.", count(0, 65535))]
ExitAfterIdle = Annotated[
    float | None,
    option(OTHERS, "Exit this many seconds after the last race and the last tab ended.", number()),
]

# --- plans, simulations, comparisons, figures ---

LearnerCount = Annotated[int | None, option(OTHERS, "Number of learners.", count(2))]
PlannedRace = Annotated[
    Path | None,
    argument(
        "[RACE.toml]",
        "File of a race of programs: its learners and its budget. Options replace its settings.",
    ),
]
ProblemName = Annotated[str, option(OTHERS, PROBLEMS)]
Runs = Annotated[int, option(OTHERS, "Runs of each policy at each budget.", count())]
Target = Annotated[str, option(OTHERS, "cpu, gpu or python.", choice("cpu", "gpu", "python"))]
Method = Annotated[
    str,
    option(
        OTHERS,
        "pulls: draw every reward; sums: draw window sums (Gaussian noise, fixed "
        "plans); auto: sums if possible.",
        choice("auto", "pulls", "sums"),
    ),
]
Threads = Annotated[int | None, option(OTHERS, "CPU threads. Default: all cores.", count())]
Chunk = Annotated[
    int | None, option(OTHERS, "Runs per unit of work. Default: automatic.", count())
]
FirstRun = Annotated[int, option(OTHERS, "Number of the first run.", count(0))]
CurvesFolder = Annotated[
    Path | None,
    argument(
        "[FOLDER]",
        "Your own curves instead: a folder of .csv, .parquet or .npz files, or of "
        "journals of finished races, one per problem; name.run1.csv, name.run2.csv, ..."
        " are runs of one.",
    ),
]
CurveSets = Annotated[
    str,
    option(
        OTHERS,
        "Sets separated by commas. In the package: tables-design, tables-report, tables-fresh "
        "(together: tables), random-FAMILY (six of them: random), paper-a, paper-b. From files "
        "in LATEBLOOMER_DATA: lcdb10 (`latebloomer download lcdb`), imdb (`latebloomer download "
        "imdb`; paper: the paper's three), and lcdb11-linear, lcdb11-geometric, taskset, "
        "srb-imdb, yahpo (these five: public), which no command fetches.",
    ),
]
Units = Annotated[
    str,
    option(
        OTHERS,
        "What budgets count: pulls, seconds (of training and scoring, where they were recorded), "
        "or both.",
    ),
]
Draws = Annotated[int, option(OTHERS, "Draws of the noise for each problem.", count())]
Sigma = Annotated[float | None, option(OTHERS, "Noise added to curves recorded once.", number())]
Arms = Annotated[
    str, option(OTHERS, "Arms of the problems of taskset and yahpo: some of 8,16,32,64,128.")
]
DataSet = Annotated[
    str,
    argument(
        "NAME",
        "imdb: the paper's seven recorded curves. lcdb: LCDB 1.0 from PyPI, real runs "
        "of about 16 learners on 181 data sets, the bench's set lcdb10 (68 MB are "
        "fetched).",
    ),
]
DataFolder = Annotated[Path, argument("FOLDER", "Folder to write to; LATEBLOOMER_DATA names it.")]
FigureNames = Annotated[
    list[str] | None, argument("[NAMES]...", "Figures or tables by name, or all.")
]
Listed = Annotated[bool, option(OTHERS, "List the names.", name="--list")]
Mode = Annotated[
    str,
    option(
        OTHERS,
        "as-written: the text's algorithms; as-published: the published code's conventions.",
        choice(AS_WRITTEN, AS_PUBLISHED),
    ),
]
Jobs = Annotated[int | None, option(OTHERS, "Threads. Default: all cores.", count())]
Cited = Annotated[str, argument("[NAME]", "Policy, or key of a reference.")]

# --- the paper's guarantees ---

NoiseLevel = Annotated[
    float | None,
    option(
        OTHERS,
        "Sub-Gaussian level sigma of the rewards. Default: that of the problem's noise.",
        number(),
    ),
]
WindowShare = Annotated[
    float,
    option(OTHERS, "Epsilon, the share of an arm's pulls that its rating uses.", number()),
]
Exploration = Annotated[
    float | None,
    option(
        OTHERS,
        "R-UCBE's exploration parameter a. Default: the largest that Theorem 1 allows.",
        number(),
    ),
]
Exponent = Annotated[
    float | None,
    option(
        OTHERS,
        "Exponent of Assumption 2. Default: the largest that goes with c.",
        number(),
    ),
]
Constant = Annotated[
    float | None,
    option(
        OTHERS,
        "Constant of Assumption 2. Default: 1, or the smallest that goes with beta.",
        number(),
    ),
]
Iota = Annotated[
    float,
    option(
        OTHERS,
        "Share of the budget that R-UCBE's regret bound promises to the best arm.",
        number(),
    ),
]
BoundBudgets = Annotated[
    str, option(BUDGET, "Budget T in pulls, over all arms; several separated by commas.")
]
