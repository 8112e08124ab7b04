"""Which methods the exact solver takes, and when it changes them: the portfolio."""

from pathlib import Path

from marginsvm.algorithms.exact.portfolio import FIRST, NEXT
from marginsvm.algorithms.exact.shape import Portfolio

PAGE = Path(__file__).parents[1] / "docs" / "exact_solver.md"


def tables():
    """The rules of the portfolio, as the documentation prints them."""
    yield from ("| problem | method to begin with | tables |", "|---|---|---|")
    yield from (f"| {rule.name} | {rule.method.name} | {rule.measured} |" for rule in FIRST)
    yield from (
        "",
        "| method | has found | on this condition | next | tables |",
        "|---|---|---|---|---|",
    )
    for (method, turn), handovers in NEXT.items():
        for handover in handovers:
            case = f"{method.name} | {turn.name.lower()} | {handover.name}"
            yield f"| {case} | {handover.method.name} | {handover.measured} |"


def test_the_documentation_prints_the_rules():
    lines = "\n".join(tables())
    assert lines in PAGE.read_text(), f"docs/exact_solver.md must contain:\n{lines}"


def test_the_documentation_names_every_threshold():
    page = PAGE.read_text()
    for name, value in vars(Portfolio()).items():
        assert f"`{name}` = {value:,}" in page, f"docs/exact_solver.md must contain {name}, {value}"
