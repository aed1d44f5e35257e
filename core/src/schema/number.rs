//! Numbers of JSON, compared and divided without rounding.

use std::{cmp::Ordering, hash::Hash};

use serde_json::Number;

/// Integers of JSON are read as 64 bits, so that they are all smaller.
const LARGE: f64 = 1e20;

/// Compares two numbers by value: `1` and `1.0` are equal.
pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => compare_integer(one, float(other)),
        (None, Some(other)) => compare_integer(other, float(one)).reverse(),
        // JSON has no NaN.
        (None, None) => float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal),
    }
}

/// Returns `true` for an integer, also one that is written with a fraction, such as `1.0`.
pub(super) fn is_integer(number: &Number) -> bool {
    !number.is_f64() || float(number).fract() == 0.0
}

/// Returns `true` for an integer that is read as a floating-point number because it does not fit 64 bits.
pub(super) fn is_large(number: &Number) -> bool {
    number.is_f64() && float(number).abs() >= LARGE
}

/// Returns `true` for an integer that a double can't hold: it would be rounded, or others would be rounded to it. One beyond 64
/// bits is read as a double and not recognized.
pub(super) fn is_beyond_doubles(number: &Number) -> bool {
    const LARGEST: u64 = (1 << 53) - 1;
    let magnitude = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    magnitude > Some(LARGEST)
}

/// Returns `true` if `number` divided by `divisor`, which is above zero, is an integer. Both are taken as the decimal
/// numbers that they are written as, so that 0.3 is a multiple of 0.1.
pub(super) fn is_multiple(number: &Number, divisor: &Number) -> bool {
    let (number, divisor) = (Decimal::from(number), Decimal::from(divisor));
    if number.digits == 0 || divisor.digits == 0 {
        return number.digits == 0;
    }
    if number.exponent >= divisor.exponent {
        let factor = power_modulo(number.exponent.abs_diff(divisor.exponent), divisor.digits);
        return (number.digits % divisor.digits * factor).is_multiple_of(divisor.digits);
    }
    // Beyond what fits, the divisor is larger than the number.
    let factor = 10_u128.checked_pow(number.exponent.abs_diff(divisor.exponent));
    let divisor = factor.and_then(|factor| divisor.digits.checked_mul(factor));
    divisor.is_some_and(|divisor| number.digits.is_multiple_of(divisor))
}

/// Returns what equal numbers have in common, and few others.
pub(super) fn key(number: &Number) -> impl Hash {
    let float = float(number);
    #[expect(clippy::cast_possible_truncation, reason = "it is within ±1e20, and has no fraction")]
    let whole = (float.fract() == 0.0 && float.abs() < LARGE).then_some(float as i128);
    match integer(number).or(whole) {
        Some(integer) => (integer, 0),
        None => (0, float.to_bits()),
    }
}

/// A decimal number without its sign: `digits * 10^exponent`. The digits are below 2^64.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl From<&Number> for Decimal {
    fn from(number: &Number) -> Self {
        if let Some(integer) = integer(number) {
            return Self { digits: integer.unsigned_abs(), exponent: 0 };
        }
        // The fewest digits that name the number: "-1.25e-3".
        let text = format!("{:e}", float(number).abs());
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let places = i32::try_from(fraction.len()).unwrap_or_default();
        Self {
            digits: format!("{whole}{fraction}").parse().unwrap_or_default(),
            exponent: exponent.parse::<i32>().unwrap_or_default() - places,
        }
    }
}

/// Returns `10^exponent % modulus`, for a modulus below 2^64.
fn power_modulo(mut exponent: u32, modulus: u128) -> u128 {
    let (mut result, mut base) = (1 % modulus, 10 % modulus);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * base % modulus;
        }
        base = base * base % modulus;
        exponent >>= 1;
    }
    result
}

fn compare_integer(integer: i128, float: f64) -> Ordering {
    if float >= LARGE {
        return Ordering::Less;
    }
    if float <= -LARGE {
        return Ordering::Greater;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is within ±1e20, and has no fraction")]
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then(0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).expect(text)
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let ascending = [
            "-1e300",
            "-18446744073709551616.0",
            "-9007199254740993",
            "-9007199254740992",
            "-1.5",
            "-1",
            "-0.5",
            "0",
            "0.5",
            "1",
            "1.5",
            "9007199254740992.0",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616.0",
            "1e300",
        ];
        for (at, one) in ascending.iter().enumerate() {
            for (other_at, other) in ascending.iter().enumerate() {
                let compared = compare(&number(one), &number(other));
                assert_eq!(compared, at.cmp(&other_at), "{one} {other}");
            }
        }
        for (one, other) in
            [("1", "1.0"), ("0", "-0.0"), ("9007199254740992", "9007199254740992.0")]
        {
            assert_eq!(compare(&number(one), &number(other)), Ordering::Equal, "{one} {other}");
        }
    }

    #[test]
    fn an_integer_may_be_written_with_a_fraction() {
        for (text, is_one) in [
            ("1", true),
            ("1.0", true),
            ("-3e2", true),
            ("1e300", true),
            ("1.5", false),
            ("1e-9", false),
        ] {
            assert_eq!(is_integer(&number(text)), is_one, "{text}");
        }
    }

    #[test]
    fn multiples_are_those_of_the_decimal_numbers() {
        for (text, divisor, is_one) in [
            ("0", "3", true),
            ("-9", "3", true),
            ("10", "3", false),
            ("0.3", "0.1", true),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("4.5", "1.5", true),
            ("3", "1.5", true),
            ("4", "1.5", false),
            ("9007199254740993", "2", false),
            ("18446744073709551615", "18446744073709551615", true),
            ("18446744073709551615", "18446744073709551614", false),
            ("1e308", "0.123456789", false),
            ("1e308", "0.5", true),
            ("1e308", "1e-8", true),
            ("12391239123", "1e-8", true),
            ("1e-300", "1e300", false),
            ("0.5", "1e300", false),
        ] {
            assert_eq!(is_multiple(&number(text), &number(divisor)), is_one, "{text} {divisor}");
        }
    }
}
