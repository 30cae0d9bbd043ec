"""Every name of the product that a planted bug replaces or calls, in one table: a seam -> "module:attribute".

A mutant knows seams alone, so that a module that moves or is renamed changes this file and no other. Where the product
imports one function into several modules, a seam has several places, and a bug is planted in them all. A place that is
no longer there is an error, not a killed bug.
"""

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tacit.errors import InvalidParameter
from tacit_gauntlet.learning_targets import LEARNING_TARGETS
from tacit_gauntlet.ledger_targets import LEDGER_TARGETS
from tacit_gauntlet.server_targets import SERVER_TARGETS

TARGETS: dict[str, str | tuple[str, ...]] = {
    # noise
    "settle_below": "tacit.noise.coins:settle_below",
    "KEY_BYTES": "tacit.noise.bits:KEY_BYTES",
    "Keystream": "tacit.noise.bits:Keystream",
    "Keystream.__init__": "tacit.noise.bits:Keystream.__init__",
    "Keystream.words": "tacit.noise.bits:Keystream.words",
    "fresh_key": "tacit.noise.bits:_fresh_key",
    "fresh_bytes": "tacit.noise.bits:fresh_bytes",
    "WideGaussian.exponent": "tacit.noise.gaussian:WideGaussian._exponent",
    "gaussian_sampler": "tacit.noise.gaussian:gaussian_sampler",
    "add_steps": "tacit.noise.grid:add_steps",
    "float_step": "tacit.noise.grid:float_step",
    "read onto a grid": "tacit.noise.grid:read",
    "DiscreteLaplace.draw": "tacit.noise.laplace:DiscreteLaplace._draw",
    "laplace_tables": "tacit.noise.laplace:laplace_tables",
    "Gaussian.release": "tacit.noise.mechanism:Gaussian.release",
    "Laplace.release": "tacit.noise.mechanism:Laplace.release",
    "draw_staircase": "tacit.noise.laplace:draw_staircase",
    "level_table": "tacit.noise.laplace:level_table",
    "ThresholdTable.look_up": "tacit.noise.threshold:ThresholdTable._look_up",
    "ThresholdTable.settle": "tacit.noise.threshold:ThresholdTable.settle",
    "WIDTH": "tacit.noise.threshold:WIDTH",
    "draw_below": "tacit.noise.coins:draw_below",
    "Keystream in integer noise": "tacit.noise.threshold:Keystream",
    "urandom": "os:urandom",
    "predictable generators": (
        "numpy.random:random",
        "numpy.random:bytes",
        "numpy.random:normal",
        "numpy.random:laplace",
        "numpy.random:default_rng",
        "numpy.random:randint",
        "numpy.random:RandomState",
        "numpy.random:standard_normal",
        "random:random",
        "random:gauss",
        "random:getrandbits",
        "random:randbytes",
        "random:Random",
        "random:expovariate",
    ),
    # accounting
    "counted events": "tacit.accounting.composition:_event_counts",
    "pair_of": "tacit.accounting.composition:pair_of",
    "pure_to_zcdp": "tacit.accounting.convert:pure_to_zcdp",
    "upward in conversions": "tacit.accounting.convert:upward",
    "delta_at": "tacit.accounting.cost:delta_at",
    "noise_delta": "tacit.accounting.cost:noise_delta",
    "sampled_delta": "tacit.accounting.cost:_sampled_delta",
    "renyi_delta": "tacit.accounting.cost:_renyi_delta",
    "upward in costs": "tacit.accounting.cost:upward",
    "zcdp": "tacit.accounting.cost:zcdp",
    "downward": "tacit.numbers:downward",
    "Charge": "tacit.accounting.filter:Charge",
    "Charge.__add__": "tacit.accounting.filter:Charge.__add__",
    "charge_of": "tacit.accounting.filter:charge_of",
    "FOR_KEYS": "tacit.accounting.filter:FOR_KEYS",
    "FOR_NOISE": "tacit.accounting.filter:FOR_NOISE",
    "FOR_RHO": "tacit.accounting.filter:FOR_RHO",
    "Rule.admits": "tacit.accounting.filter:BudgetRule.admits",
    "Rule.admits_by_addition": "tacit.accounting.filter:BudgetRule.admits_by_addition",
    "continuous_gaussian_delta": "tacit.accounting.cost:continuous_gaussian_delta",
    "gaussian_delta": "tacit.accounting.cost:gaussian_delta",
    "Lattice": "tacit.accounting.pair:Lattice",
    "losses on a grid": "tacit.accounting.pld:on_grid",
    # privacy
    "ExponentialChoice": "tacit.privacy.loss:ExponentialChoice",
    "GaussianNoise": "tacit.privacy.loss:GaussianNoise",
    "KeyThreshold": "tacit.privacy.loss:KeyThreshold",
    "SubsampledGaussian": "tacit.privacy.loss:SubsampledGaussian",
    "an amount's text": "tacit.numbers:_from_text",
    "from_text": (
        "tacit.numbers:from_text",
        "tacit.privacy.loss:from_text",
        "tacit.ledger.entry:from_text",
        "tacit.local.survey:from_text",
    ),
    "ball": "tacit.numbers:ball",
    "rounded_up": "tacit.numbers:rounded_up",
    "StaircaseLaw.level": "tacit.privacy.law:StaircaseLaw._level",
    # selection
    "Exponential.pick": "tacit.selection.selection:Exponential._pick",
    "NoisyMax.pick": "tacit.selection.selection:NoisyMax._pick",
    "NoisyMax.event": "tacit.selection.selection:NoisyMax.event",
    "PermuteAndFlip.event": "tacit.selection.selection:PermuteAndFlip.event",
    "draw_below in permute-and-flip": "tacit.selection.selection:draw_below",
    "BEYOND": "tacit.selection.quantile:BEYOND",
    "Rate.for_extreme": "tacit.selection.quantile:Rate.for_extreme",
    "AboveThreshold.answers": "tacit.selection.sparse_vector:AboveThreshold._answers",
    "AboveThreshold.lengths": "tacit.selection.sparse_vector:AboveThreshold._lengths",
    "Split": "tacit.selection.sparse_vector:Split",
    "split_epsilon": "tacit.selection.sparse_vector:split_epsilon",
    "Terms.reach": "tacit.selection.scores:SelectionTerms.reach",
    "settle a weight": "tacit.selection.weights:_settle",
    "TopK.release": "tacit.selection.selection:TopK.release",
    # local
    "Attributes": "tacit.local.survey:Attributes",
    "frequency_protocol": "tacit.local.choosing:frequency_protocol",
    "certain_floor": "tacit.local.protocols.protocol:certain_floor",
    "kept_chance": "tacit.local.protocols.protocol:kept_chance",
    "Collector.add_batch": "tacit.local.collector:Collector._add_batch",
    "find_patterns": "tacit.local.collector:find_patterns",
    "FrequencyEstimate.poisoning": "tacit.local.estimate:FrequencyEstimate.poisoning",
    "Shift": "tacit.local.estimate:Shift",
    "Counting.bounds": "tacit.local.estimate:Counting.bounds",
    "Counting.unbiased": "tacit.local.estimate:Counting.unbiased",
    "LongitudinalClient.__init__": "tacit.local.client:LongitudinalClient.__init__",
    "LongitudinalClient.permanent": "tacit.local.client:LongitudinalClient._permanent",
    "LongitudinalClient.save": "tacit.local.client:LongitudinalClient._save",
    "LongitudinalClient.reports": "tacit.local.client:LongitudinalClient.reports",
    "Labels.read_one": "tacit.local.domain:Labels.read_one",
    "respond": "tacit.local.protocols.protocol:respond",
    "draw_below in a response": "tacit.local.protocols.protocol:draw_below",
    "label_reports": "tacit.local.client:label_reports",
    "Store.__init__": "tacit.local.tally_file:TallyFile.__init__",
    "Store.first_seen": "tacit.local.tally_file:TallyFile.first_seen",
    "attributes of a survey": "tacit.local.survey:_attributes",
    "Permanent.permanent_keep": "tacit.local.protocols.unary:Permanent.permanent_keep",
    "draw_heads": "tacit.local.protocols.unary:draw_heads",
    "WRONG_EPOCH": "tacit.local.wire:WRONG_EPOCH",
    "check_report": "tacit.local.wire:check_report",
    "report_line": "tacit.local.wire:report_line",
    # tables
    "text of a frame": "tacit.tables.frames:_cell_text",
    "column of a frame": "tacit.tables.frames:_series",
    "optimizers_off": "tacit.tables.connection:optimizers_off",
    "LINE_END": "tacit.tables.formats:LINE_END",
    "read_header": "tacit.tables.formats:read_header",
    "PER_SECOND": "tacit.tables.cells:PER_SECOND",
    "text of a file": "tacit.tables.cells:_are_sound",
    "time of a file": "tacit.tables.cells:_time",
    "plain_schema": "tacit.tables.source:plain_schema",
    "Source.streaming": "tacit.tables.source:Source.streaming",
    "no_warnings": "tacit.tables.formats:no_warnings",
    "plain_cells": "tacit.tables.formats:_plain_cells",
    "read_csv": "tacit.tables.formats:read_csv",
    # query
    "canonical": "tacit.query.typecheck:canonical",
    "check of a row expression": "tacit.query.check:_row",
    "limit_expression": (
        "tacit.query.check:limit_expression",
        "tacit.query.sql.parse:limit_expression",
        "tacit.query.sql.shown:limit_expression",
        "tacit.query.check:limit_expression",
        "tacit.query.sql.per_unit:limit_expression",
    ),
    "limit_work": "tacit.query.check:limit_work",
    "parse_expression": "tacit.query.frame:parse_expression",
    "value_of": "tacit.query.nodes:value_of",
    "TEXT_TIMES_MAX": "tacit.query.typecheck:TEXT_TIMES_MAX",
    "Call": "tacit.query.nodes:Call",
    "functions by node": "tacit.query.sql.expressions:_BY_NODE",
    "sqlglot's expressions": "tacit.query.sql.expressions:exp",
    "show_value": "tacit.query.sql.expressions:show_value",
    "rows of FROM": "tacit.query.sql.statement:from_rows",
    "query of a statement": "tacit.query.sql.statement:Statement.branch",
    "parsed SQL": "tacit.query.sql.questions:parsed",
    "refuse_other_statements": "tacit.query.sql.questions:_refuse_other_statements",
    "unreadable SQL": "tacit.query.sql.parse:_unreadable",
    "refuse_mixing": "tacit.query.sql.from_clause:_refuse_mixing",
    "keys of a subquery": "tacit.query.sql.per_unit:_UnitSelect._keys",
    "Rows.resolve": "tacit.query.sql.from_clause:RowReader.resolve",
    "only known parts": (
        "tacit.query.sql.statement:only",
        "tacit.query.sql.questions:only",
        "tacit.query.sql.expressions:only",
        "tacit.query.sql.shown:only",
        "tacit.query.sql.from_clause:only",
        "tacit.query.sql.per_unit:only",
    ),
    # plan
    "measured_column": "tacit.plan.layout:measured_column",
    "holdable": "tacit.plan.layout:_holdable",
    "is_too_fine": "tacit.plan.layout:_is_too_fine",
    "limit_cells": "tacit.plan.planner:limit_cells",
    "PlannedTogether": "tacit.plan.planner:PlannedTogether",
    "events of plans together": "tacit.plan.planner:PlannedTogether.events",
    "shares of a spend": ("tacit.plan.planner:spends_of", "tacit.asking.request_parts:spends_of"),
    "Plan.events": "tacit.plan.plan:Plan.events",
    "shares of levels": "tacit.plan.levels:rounded_shares",
    "shares of a workload": "tacit.asking.workload:rounded_shares",
    "levels add up": ("tacit.query.compound:adds_up", "tacit.asking.united_question:adds_up"),
    "values that a filter keeps": "tacit.answer.workloads:_is_listed",
    "sensitivity of a level": "tacit.plan.levels:of_level",
    "noise of a level": "tacit.release.noisy:_add_noise_to_level",
    "sums of a level": "tacit.release.noisy:added_to_levels",
    "make_plan": "tacit.plan.planner:make_plan",
    "sensitivity_of": "tacit.plan.planner:sensitivity_of",
    "sensitivity_of_totals": (
        "tacit.plan.bounds.scaled:sensitivity_of_totals",
        "tacit.plan.groups:sensitivity_of_totals",
    ),
    "threshold_for_weights": "tacit.plan.bounds.facts:threshold_for_weights",
    "KeySearch.key": "tacit.plan.bounds.facts:KeySearch.key",
    "enough people in known groups": "tacit.plan.bounds.facts:_hold_enough",
    "people of a profile": "tacit.plan.bounds.facts:_people",
    "Fact": "tacit.plan.bounds.facts:Fact",
    "Grouping.record": "tacit.plan.bounds.facts:Grouping.record",
    "Grouping.moves": "tacit.plan.bounds.facts:Grouping.moves",
    "sensitivity_of_vector": (
        "tacit.plan.bounds.scaled:sensitivity_of_vector",
        "tacit.plan.bounds.facts:sensitivity_of_vector",
        "tacit.plan.groups:sensitivity_of_vector",
    ),
    "threshold_for": "tacit.plan.planner:threshold_for",
    "Rate": (
        "tacit.plan.split:Rate",
        "tacit.release.noisy:Rate",
    ),
    "least scale": "tacit.plan.split:SCALE_MIN",
    "pure share": "tacit.plan.split:_pure",
    "draw_of": "tacit.plan.split:draw_of",
    "laplace_scale": "tacit.plan.split:laplace_scale",
    "Laplace release": "tacit.plan.split:_laplace",
    # engine
    "make_secret": "tacit.engine.kernel.coding:make_secret",
    "clear the cache": "tacit.engine.kernel.compiled:_clear",
    "digests of the cache": "tacit.engine.kernel.compiled:_digests",
    "fault of the cache": "tacit.engine.kernel.compiled:fault_of",
    "Cell.settled": "tacit.engine.conversion:Cell.settled",
    "Engine.long_texts": "tacit.engine.engine:EmbeddedEngine._long_texts",
    "Engine.patient": "tacit.engine.engine:EmbeddedEngine._patient",
    "Engine.parts": "tacit.engine.engine:EmbeddedEngine.parts",
    "SparkEngine.parts": "tacit.engine.spark:SparkEngine.parts",
    "Link.run": "tacit.tables.postgres_snapshot:Link.run",
    "Snapshot.stream": "tacit.tables.postgres_snapshot:Snapshot._stream",
    "Snapshot.parts": "tacit.tables.postgres_snapshot:Snapshot._parts",
    "merged streams": "tacit.tables.postgres_snapshot:merged",
    "pages between": "tacit.tables.postgres_snapshot:_pages_between",
    "bytes of a batch": "tacit.tables.postgres_snapshot:BATCH_BYTES",
    "pages of a reader": "tacit.tables.postgres_snapshot:PAGES_EACH",
    "cores of a reader": "tacit.tables.postgres_snapshot:CORES_EACH",
    "readers at most": "tacit.tables.postgres_snapshot:CONNECTIONS_MOST",
    "os.cpu_count": "os:cpu_count",
    "compared by the server": "tacit.tables.postgres_table:_compared_column",
    "written for the server": "tacit.tables.postgres_table:written",
    "wanted_rows": "tacit.engine.engine:wanted_rows",
    "SparkEngine.aggregate": "tacit.engine.spark:SparkEngine._aggregate",
    "integers from SQL": "tacit.engine.engine:_integers",
    "listed_groups": "tacit.engine.engine:_listed_groups",
    "distinct_relation": "tacit.engine.engine:distinct_relation",
    "refuse_without_folder": "tacit.engine.engine:refuse_without_folder",
    "power of floats": "tacit.engine.translations:_pow",
    "TRANSLATIONS": "tacit.engine.expression:TRANSLATIONS",
    "INT_REACH": "tacit.engine.expression:INT_REACH",
    "clamped": "tacit.engine.expression:_clamped",
    "leaving": (
        "tacit.engine.kernel.kernel_path:leaving",
        "tacit.engine.relation:leaving",
    ),
    "just below a half": "tacit.engine.translations:_BELOW_HALF",
    "float constant": "tacit.engine.translations:_float",
    "whole number": "tacit.engine.translations:_whole_sql",
    "wide product": "tacit.engine.translations:_WIDE",
    "UNIT": "tacit.engine.relation:UNIT",
    "whole steps of a unit": "tacit.engine.derived:_whole_steps",
    "sum of a unit": "tacit.engine.derived:_unit_sum",
    "limbs of a word": "tacit.engine.patience.patient_units:_unit_limbs",
    "belongs_to_someone": "tacit.engine.relation:belongs_to_someone",
    "bound_groups": "tacit.engine.relation:_bound_groups",
    "weighed": "tacit.engine.relation:weighed",
    "weight of a row": "tacit.engine.relation:WEIGHT",
    "weights of units": "tacit.engine.patience.patient_cells:_weights",
    "roots of squares": "tacit.engine.patience.patient_cells:_roots",
    "vectors of the kernel": "tacit.engine.kernel.kernel_path:_as_array",
    "bound_rows": "tacit.engine.relation:_bound_rows",
    "salted": "tacit.engine.relation:_salted",
    "typed SQL": "tacit.engine.relation:sql",
    "steps_above_low": "tacit.engine.relation:steps_above_low",
    "joined_rows": "tacit.engine.derived:joined_rows",
    "pairs of a unit": "tacit.engine.derived:_fewer_pairs",
    "joined_with_owners": "tacit.tables.owned_rows:joined_with_owners",
    "ties of a window": "tacit.engine.derived:ties_by",
    "unit_window": "tacit.engine.derived:unit_window",
    "keys of a join": "tacit.engine.derived:equal_keys",
    "unit of a join": "tacit.engine.derived:UNIT_KEY",
    "values of a window": "tacit.query.windows:window_values",
    "rules of intervals": "tacit.query.spans:_RULES",
    "post-processing of an answer": "tacit.answer.answer:apply_postprocessing",
    "rules of ranges": "tacit.query.ranges:_RULES",
    "units with a condition": "tacit.query.sql.statement:AggregateReader._units_where",
    "refuse_more_matches": "tacit.engine.derived:refuse_more_matches",
    "public side in the engine": "tacit.engine.derived:is_public",
    "hash of the unit": "tacit.engine.cutting:hash_of",
    "part of a hash": "tacit.engine.cutting:part_of",
    "part_tables": "tacit.engine.part:part_tables",
    "pairs of a key and a value": "tacit.engine.part:count_values",
    "added_parts": "tacit.engine.part:added_parts",
    "Task.__call__": "tacit.engine.task:Task.__call__",
    "matches of a join": "tacit.query.joins:_matched",
    "first time": "tacit.engine.translations:_FIRST",
    "last time": "tacit.engine.translations:_LAST",
    "time limit": "tacit.engine.translations:_limit",
    "Engine.aggregate": "tacit.engine.engine:EmbeddedEngine._aggregate",
    "Engine.quick": "tacit.engine.engine:EmbeddedEngine._quick",
    "least memory": "tacit.memory:LEAST",
    "folder of ours": "tacit.memory:_mine",
    "tempdir": "tempfile:tempdir",
    "kernel loaded": "tacit.engine.kernel.compiled:_loaded",
    "kernel broken": "tacit.engine.kernel.compiled:_broken",
    "import the loops": "tacit.engine.kernel.compiled:_import_loops",
    "cells of profiles": "tacit.engine.scaled_relation:unbounded_cells",
    "row_steps": "tacit.engine.scaled_relation:_row_steps",
    "lengths of units": "tacit.engine.scaled_relation:unit_lengths",
    "scaled cells": "tacit.engine.scaled_relation:scaled_blocks",
    "squares of sizes": "tacit.engine.patience.patient_cells:squared",
    "sums of units": "tacit.engine.patience.patient_cells:_by_unit",
    "kept_and_cut": "tacit.engine.patience.patient_cells:kept_and_cut",
    "towards zero": "tacit.engine.patience.patient_cells:towards_zero",
    "ONE": "tacit.engine.patience.patient_cells:ONE",
    # release
    "chosen groups": "tacit.release.noisy:_choose_keys",
    "with noise": "tacit.release.noisy:_add_noise",
    "draw_quantiles": "tacit.release.noisy:draw_quantiles",
    "release": "tacit.release.noisy:release",
    # answer
    "cut_to_possible": "tacit.answer.columns:cut_to_possible",
    "answers on a grid": "tacit.answer.columns:on_grid",
    "symmetric": "tacit.answer.columns:_symmetric",
    "printable": "tacit.answer.text:printable",
    # asking
    "Answered": "tacit.asking.request:Answered",
    "SALT_BYTES": "tacit.asking.session:SALT_BYTES",
    "Session.release": "tacit.asking.session:Session.release",
    "Session.learn one fact": "tacit.asking.session:Session.learn_fact",
    "Session.learn_missing": "tacit.asking.session:Session.learn_missing",
    "Session.key of a fact": "tacit.asking.session:Session.fact_key",
    "read_learn": "tacit.asking.question:read_learn",
    "Session.refuse_other_people": "tacit.asking.session:Session.refuse_other_people",
    "relation_mark": "tacit.asking.session:relation_mark",
    "Session.key": "tacit.asking.session:Session.key_of",
    "Request.answer": "tacit.asking.request:Request.answer",
    "whole installation": "tacit.asking.paying:refuse_incomplete",
    "failures after a charge": "tacit.asking.paying:failing_alike",
    "question_key": ("tacit.plan.planner:question_key", "tacit.asking.request_parts:question_key"),
    "fresh_bytes in a session": "tacit.asking.session:fresh_bytes",
    "refuse_merged": "tacit.asking.opening:_refuse_merged",
    "read_bound": "tacit.asking.opening:read_bound",
    "Question.answer": "tacit.asking:QuestionVerbs.answer",
    **LEDGER_TARGETS,
    **LEARNING_TARGETS,
    **SERVER_TARGETS,
}

# (module or class, attribute) -> what stood there before a bug was planted
_before: dict[tuple[int, str], Any] = {}

_ABSENT = object()


def original(seam: str) -> Any:
    """Return what stands at a seam, without any bug that is planted there now."""
    owner, name = places_of(seam)[0]
    return _before.get((id(owner), name), getattr(owner, name))


def standing(seam: str) -> Any:
    """Return what stands at a seam now, a bug that is planted there included."""
    owner, name = places_of(seam)[0]
    return getattr(owner, name)


@contextmanager
def planted(seam: str, replacement: object) -> Iterator[None]:
    """Replace what stands at a seam while open, in each of its places; refuse a place that is not there."""
    with ExitStack() as stack:
        for owner, name in places_of(seam):
            stack.enter_context(replaced(owner, name, replacement))
        yield


@contextmanager
def replaced(owner: object, name: str, replacement: object) -> Iterator[None]:
    """Replace the attribute `name` of a module or class while open; refuse a name that is not there."""
    refuse_stale(owner, name)
    before, first = vars(owner)[name], (id(owner), name) not in _before
    if first:
        _before[id(owner), name] = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, before)
        if first:
            del _before[id(owner), name]


def places_of(seam: str) -> list[tuple[object, str]]:
    """Return the modules and classes that hold a seam, each with the attribute's name."""
    if seam not in TARGETS:
        raise InvalidParameter(f"there is no seam '{seam}'\nhint: write it into the table in targets.py")
    written = TARGETS[seam]
    return [place_of(target) for target in ((written,) if isinstance(written, str) else written)]


def place_of(target: str) -> tuple[object, str]:
    """Return the module or class that a target names, and the attribute; refuse one that is not there."""
    module, _, attributes = target.partition(":")
    *within, name = attributes.split(".")
    owner: object = importlib.import_module(module)
    for part in within:
        refuse_stale(owner, part)
        owner = vars(owner)[part]
    refuse_stale(owner, name)
    return owner, name


def refuse_stale(owner: object, name: str) -> None:
    """Refuse an attribute that a module or class does not define itself."""
    if vars(owner).get(name, _ABSENT) is _ABSENT:
        raise InvalidParameter(
            f"cannot plant a bug: {getattr(owner, '__name__', owner)!s} defines no '{name}'"
            "\nhint: the code moved; point its seam in targets.py at where it is now"
        )
