"""Numbers in texts for people."""

from __future__ import annotations

from tests.cases import each

from germane.insights.formatting import format_number


@each(
    ("value", "digits", "text"),
    [
        (None, 2, "\u2013"),
        (0.694, 2, "0.69"),
        (-0.001, 2, "0.00"),
        (-0.01, 2, "\u22120.01"),
        (999_999.0, 1, "999999.0"),
        (1e6, 2, "1e+06"),
        (1_234_567.0, 2, "1.23e+06"),
        (1_234_567.0, 3, "1.235e+06"),
    ],
)
def test_numbers_have_the_given_digits_or_an_exponent(value: float | None, digits: int, text: str) -> None:
    """Zero has no sign, and from a million on, a number has one digit more than decimals asked for."""
    assert format_number(value, digits) == text
