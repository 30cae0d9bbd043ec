"""The models' part of the table of seams (targets.py): every name of it that a planted bug replaces or calls."""

LEARNING_TARGETS: dict[str, str | tuple[str, ...]] = {
    "noise of a round": "tacit.learning.rounds:release_integers",
    "noise of a choice": "tacit.learning.rounds:release_choice",
    "Rounds.counts": "tacit.learning.rounds:Rounds.counts",
    "clipped residuals": "tacit.engine.coded.residuals:clipped",
    "a row's part of its unit": (
        "tacit.engine.coded.residuals:divided",
        "tacit.engine.coded.products:divided",
        "tacit.engine.coded.judging:divided",
    ),
    "Scores.moves_squared": "tacit.plan.coded:Scores.moves_squared",
    "MomentBlock.most": "tacit.plan.row_products:MomentBlock.most",
    "noise for an additive model": "tacit.learning.additive_asked:noise_for",
    "what scikit-learn asks of a fit": "tacit.learning.additive:know_features",
    "Lesson.counted": "tacit.learning.teachers:Lesson.counted",
    "units of a side": "tacit.engine.derived:some_units",
    "units apart": "tacit.learning.scoring.sides:UnitRange.is_apart_from",
    "step of a unit": "tacit.plan.coded:UNIT",
    "open_ledger": "tacit.learning.declared_rows:open_ledger",
    "ledger of a try": "tacit.learning.declared_rows:_tried",
    "refuse model selection": "tacit.learning.declared_rows:_refuse_model_selection",
    "ranges of a fit": "tacit.learning.facts.undeclared:_ranges",
    "Session.spend": "tacit.session:Session.spend",
    "Engine.coded": "tacit.engine.embedded:EmbeddedEngine.coded",
}
