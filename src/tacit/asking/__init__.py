"""A request from its words to its answer: a protected table, what is asked of it, and the one way to pay for it.

`tacit.table()` opens a table; `request.py` has the story of every answer.
"""

from tacit.asking.describing import (
    Description,
    PlanReport,
    asked_of_public_facts,
    described_as_asked,
)
from tacit.asking.learned import (
    ALL,
    KnownFacts,
    Learn,
    all_missing,
    can_plan,
    events_of,
    explain_what_was_learned,
    fact_text,
    read_learn,
    source_of,
)
from tacit.asking.opening import Catalog, catalog, declared, public, table
from tacit.asking.paying import Payment, sent_as, spend
from tacit.asking.protected_table import Table, travelled_question
from tacit.asking.question import Question, answer_columns, learn_ahead, question_of, warn_if_large
from tacit.asking.request import left_record, what_is_left
from tacit.asking.running import Running
from tacit.asking.session import Session, noise_for, replaced, sampled_noise_for
from tacit.asking.verbs import QuestionCall, QuestionVerbs, Verbs
