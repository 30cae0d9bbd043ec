"""A run's record as one HTML page that needs nothing else: no script, no font, no network."""

from html import escape
from typing import Any

from tacit_gauntlet.frame.record import Record

_STYLE = """
:root { --ink: #1b1f24; --paper: #fff; --line: #d5d9de; --soft: #f4f6f8; --good: #1a7f37; --bad: #c01c28;
  --wait: #8a5a00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --paper: #14171a; --line: #363c43; --soft: #1d2125; --good: #57c472; --bad: #ff7b72;
          --wait: #e0a94a } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .6rem .25rem 0;
       border-bottom: 1px solid var(--line); vertical-align: top } td.n, th.n { text-align: right }
.good { color: var(--good) } .bad { color: var(--bad); font-weight: 600 } .wait { color: var(--wait) }
details { border-bottom: 1px solid var(--line); padding: .35rem 0 } summary { cursor: pointer }
summary code { display: inline-block; min-width: 3rem } .time { float: right; opacity: .75 }
dl { margin: .4rem 0 .6rem 1.2rem; background: var(--soft); padding: .6rem .8rem } dt { font-weight: 600 }
dd { margin: 0 0 .4rem 1rem; overflow-wrap: anywhere; white-space: pre-wrap } .note { opacity: .8 }
"""


def page_of(record: Record) -> str:
    """Return the page: the verdict, a summary by letter, each case with its evidence, each bug with its fate."""
    found = record.to_dict()
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Tacit: the gauntlet</title><style>{_STYLE}</style></head><body>",
        f"<h1>The gauntlet: {_verdict(ok=record.passed)}</h1>",
        f'<p class="note">{escape(str(record.setting)).replace(chr(10), "<br>")}<br>{record.seconds:.0f} s in all</p>',
        "<p>Each case is a published way in which software of this kind has leaked or lost, tried on this one. "
        "Each bug is one that was published, planted here on purpose, which its case must notice.</p>",
        _summary(record),
    ]
    if found["cases"]:
        parts += ["<h2>Cases</h2>", *(_case(each) for each in found["cases"])]
    if found["mutants"]:
        parts += ["<h2>Planted bugs</h2>", *(_mutant(each) for each in found["mutants"])]
    if record.waits:
        parts += ["<h2>What waits</h2>", _waits(record)]
    return "\n".join([*parts, "</body></html>", ""])


def _verdict(*, ok: bool) -> str:
    return '<span class="good">survived</span>' if ok else '<span class="bad">failed</span>'


def _summary(record: Record) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{passed}</td><td class="n{" bad" if failed else ""}">{failed}</td>'
        f'<td class="n">{waits}</td><td class="n">{seconds:.0f}</td></tr>'
        for name, passed, failed, waits, seconds in record.summary()
    )
    heads = "".join(f'<th class="n">{name}</th>' for name in ("passed", "failed", "wait", "seconds"))
    return f"<table><tr><th></th>{heads}</tr>{rows}</table>"


def _case(each: dict[str, Any]) -> str:
    sign = '<span class="good">pass</span>' if each["passed"] else '<span class="bad">FAIL</span>'
    late = ", late" if each["late"] else ""
    terms = [("what is tried", each["tries"])] if each["tries"] else []
    terms += [(name, str(value)) for name, value in each["figures"].items()]
    if each["how"]:
        terms.append(("how it ended", each["how"]))
    caught = "\n".join(f"{bug['bug']} ({bug['published']})" for bug in each["would catch"])
    terms.append(("would have caught", caught or "no bug is planted for it"))
    head = f"<code>{each['id']}</code> {sign} {escape(each['title'])}"
    return _folded(head, f"{each['seconds']:.1f} s{late}", terms, is_open=not each["passed"])


def _mutant(each: dict[str, Any]) -> str:
    fate = f"killed by {each['case']}" if each["killed"] else f"SURVIVED {each['case']}"
    sign = f'<span class="{"good" if each["killed"] else "bad"}">{fate}</span>'
    terms = [("published", each["published"]), ("how", each["how"])]
    return _folded(f"{escape(each['bug'])}: {sign}", f"{each['seconds']:.1f} s", terms, is_open=not each["killed"])


def _folded(head: str, time: str, terms: list[tuple[str, str]], *, is_open: bool) -> str:
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in terms)
    summary = f'<summary>{head}<span class="time">{time}</span></summary>'
    return f"<details{' open' if is_open else ''}>{summary}<dl>{body}</dl></details>"


def _waits(record: Record) -> str:
    rows = []
    for each in record.waits:
        state = '<span class="bad">missing</span>' if each.is_due else f'<span class="wait">{escape(each.needs)}</span>'
        rows.append(f"<tr><td><code>{each.id}</code></td><td>{escape(each.title)}</td><td>waits for: {state}</td></tr>")
    return f"<table>{''.join(rows)}</table>"
