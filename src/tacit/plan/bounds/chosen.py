"""Every number of learned bounds, answers and forecasts that was chosen by measurement rather than derived.

Each line ends with the figures of `make bench ONLY=answers` that move if the number does. None of them touches privacy:
a cap, a share of epsilon and the width of an interval are public, whatever they are.
"""

from fractions import Fraction

# ---- Which groups there are: shares of a call's epsilon.

FIRST_SHARE = Fraction(6, 100)  # the first round that looks for groups: found keys / oracle, large groups shown
SECOND_MOST = Fraction(20, 100)  # the second round at most: found keys / oracle, large groups shown
ASKED_MOST = Fraction(50, 100)  # a round for groups of a size that the question names: no figure
SMALLEST = 100  # groups of this size are looked for if the question names no size: large groups shown

# ---- What is learned of people: shares of a call's epsilon, and how these are divided.

LEARNS = Fraction(11, 100)  # every question: all figures over the oracle, half-width / error
LEARNS_BY_GROUP = Fraction(27, 100)  # over the number of groups, more where these are few: intervals that hold
FEWEST_CELLS = 3  # fewer groups than this count as this number: counts of the second key, single numbers
OF_VALUES = Fraction(5, 4)  # this factor more for values, again for squares: sums, means, variances / oracle
PART_OF_TOTALS = Fraction(5)  # profiles of totals or distances, if sizes or centres have 1: sums, means / oracle
PART_OF_LENGTHS = Fraction(3, 2)  # a profile of L2 norms: keys of more than 16 groups / oracle
PART_OF_MANY = Fraction(3)  # sizes, and distances, of many columns at once: no figure of this bench, models of tables
MANY_COLUMNS = 5  # from this number of columns on: as above
AGAIN_SHARE = Fraction(25, 100)  # another round, if nothing is believed: small tables / oracle, steadiness
POORER = 8  # a profile with so many times this call's own noise is learned anew: no figure, later questions
OWN_WHERE_FROM = Fraction(1, 2)  # from this epsilon on a WHERE has profiles of its own: counts with WHERE / oracle
CLEARLY_LESS = Fraction(3, 4)  # of noise for another round, of error for totals, of width in a hint: steadiness

# ---- Reading a profile. Probabilities are those of noise alone.

FALSE_BIN = 3e-5  # that bins are believed by noise alone, or people come back after a gap: worst, steadiness
FALSE_OCTAVE = 3 / 100  # the same of the next octave of values: sums and means of one row a person
FALSE_SLOPE = 3.0  # an octave farther up these are by this power of 2 smaller: worst / oracle, steadiness

# ---- The chain that a profile is read by, from bin to bin: chances, unless it is said otherwise.

ENDS = 6 / 100  # that a tail ends: listed keys / oracle, half-width / error
KEEPS = 0.95  # that a fall stays the same: steadiness, listed keys / oracle
UNSEEN_FALL = 3  # people who are not seen become fewer by this, in quarter octaves from bin to bin: steadiness

# ---- Caps, and how the noise is divided.

MISMATCH, MISMATCH_POWER = 1 / 10, 1 / 4  # of what totals put back, the part that is wrong in a group: hard tables
MISMATCH_BY_ROWS = 1 / 8  # of sums that are cut because of many rows, the part that is wrong in a mean: means / oracle
OFF_CENTRE = 1 / 2  # how far a group's mean is from the centre, in mean distances: means / oracle, variances
PART_OF_ROWS = 1 / 4  # the loss of rows beside sums, and of sums beside squares: means / oracle, variances
PART_OF_MOMENT_ROWS = 1 / 2  # the loss of rows beside squares: variances / oracle
WITHIN_BOUNDS = 0.95  # the people who keep all groups and different values where these are bounded: no figure

# ---- Intervals: what may be missing, beside the noise.

UNEVENLY = 1.5  # times 1/√K, and its share of rows: of all that is missing a group may lack that part: the dear group
HIDDEN_SCALES = 1.2  # noise scales of people who may be hidden beyond a cap: intervals that hold, half-width / error
LOST_MORE = 2.0  # times what is foreseen beyond a cap or a range may be beyond it: the same
PART_OF_MEAN = 1 / 6  # how much of what its parts lack a mean may be off: means that hold
MEAN_SHARE = Fraction(1, 10)  # of the probability to miss, for the means in a variance: half-width / error
ROWS_SHARE = Fraction(1, 100)  # the same for the rows in a sum that was rounded to a grid: half-width / error

# ---- Workloads.

ENTROPY_SLACK = 0.03  # how far a possible table may be from its fit, by a cell's variance over the rows: all pairs

# ---- Words.

VAGUE_FROM = 0.5  # an interval of this part of its column's range is vague in a summary: no figure
WILD_FROM = 10.0  # the same, by all that the summary has of the column: no figure
NAMED_FOR = 2.0  # an epsilon is named at which the number is so many times its noise: no figure
UNSEEN_PART = 1 / 32  # of all people's caps, what sums have of which nothing is believed, to judge use: no figure
FORESEEN_TO = 20.0  # no epsilon is named beyond so many times the one that was asked with: no figure
