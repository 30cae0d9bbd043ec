"""Plans: from a question and public facts only, decide what is read, how it is bounded, its noise and its cost."""

from tacit.plan.bounds.chosen import (
    CLEARLY_LESS,
    ENTROPY_SLACK,
    FORESEEN_TIMES,
    FORESEEN_TO,
    MEAN_SHARE,
    NAMED_FOR,
    PART_OF_MEAN,
    PART_OF_VARIANCE,
    ROWS_SHARE,
    VAGUE_FROM,
    WILD_FROM,
)
from tacit.plan.bounds.facts import FEW_CELLS, NO_FACTS, Fact, Facts, WantedFact, people_beyond_ranges
from tacit.plan.bounds.filled import unseen_columns
from tacit.plan.bounds.found_keys import refuse_no_groups, smallest_shown
from tacit.plan.bounds.learning import ceiling_keys, missing_facts, needed_facts, standing_in
from tacit.plan.bounds.scaling import (
    BINS,
    CELL_MOST,
    LARGEST_BINS,
    LARGEST_LEAST,
    UNBOUNDED,
    WEIGHT_BITS,
    Profile,
    Scaling,
    Vector,
)
from tacit.plan.bounds.vectors import AT_MOST, AT_MOST_OF_TABLE
from tacit.plan.coded import (
    ERROR_SHIFTS,
    LINK_REACH,
    LINK_SHIFT,
    LOSS_MOST,
    NUMBER_ONE,
    SCORE_BITS,
    SUMS_MOST,
    UNIT,
    BinMaps,
    ChanceCells,
    ClassTarget,
    CodedColumn,
    CodedPlan,
    ErrorSums,
    Judgement,
    Merit,
    MeritName,
    MomentBlock,
    Moments,
    PairDistances,
    PairedBins,
    PairTables,
    ScoreCells,
    Scores,
    SquaredErrors,
    ValueTarget,
    count_moves_squared,
    link_table,
)
from tacit.plan.groups import whole_of
from tacit.plan.layout import STEPS_MOST, indices, measured_column, weights_of_part
from tacit.plan.plan import (
    UNIT_WEIGHT,
    Cells,
    Choice,
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Mean,
    Measured,
    Moment,
    NoiseKind,
    NoisyRelease,
    Part,
    PartKind,
    Plan,
    PlannedLevel,
    PlannedOutput,
    Product,
    Quantile,
    QuantileDraw,
    Ranking,
    Sensitivity,
    Spend,
    StandardDeviation,
    Sum,
    Variance,
    question_key,
)
from tacit.plan.planner import (
    PlannedTogether,
    make_plan,
    make_spend,
    plan_of_other_noise,
    plan_with_room,
    plans_of_noise,
    plans_together,
    spends_of,
)
from tacit.plan.running_days import DAYS_MOST, STEP_BITS, RunningPlan
from tacit.plan.split import read_weights, rounded_shares
