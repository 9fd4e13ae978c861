//! What repeated measurements say together.

use serde::{Deserialize, Serialize};

/// The middle of some values, and how far apart the middle half of them lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of the values are not above it.
    pub median: f64,
    /// A quarter of the values is not above it.
    pub low: f64,
    /// A quarter of the values is not below it.
    pub high: f64,
    /// How many values there were.
    pub count: usize,
}

impl Spread {
    /// Of no values: none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let values = sorted(values);
        (!values.is_empty()).then(|| Spread {
            median: quantile(&values, 0.5),
            low: quantile(&values, 0.25),
            high: quantile(&values, 0.75),
            count: values.len(),
        })
    }

    /// `2.50 (2.25 to 2.75)`.
    pub fn text(&self, digits: usize) -> String {
        format!(
            "{:.digits$} ({:.digits$} to {:.digits$})",
            self.median, self.low, self.high
        )
    }
}

/// Where the middle lies of all that could have been measured, with a certainty of at least 95 %: between two of the values, as many from either end as chance allows (the sign test's
/// interval, which holds whatever the values' distribution is). `None` for fewer than six values, which cannot be that certain.
pub fn median_interval(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    let values = sorted(values);
    let count = values.len();
    // How likely it is that fewer than `outside` of them are below the middle: the binomial distribution's lower end.
    let (mut likely, mut below, mut outside) = (0.5_f64.powi(count as i32), 0.0, 0);
    while below + likely <= 0.025 && outside < count / 2 {
        below += likely;
        likely *= (count - outside) as f64 / (outside + 1) as f64;
        outside += 1;
    }
    let low = outside.checked_sub(1)?;
    Some((*values.get(low)?, *values.get(count - 1 - low)?))
}

/// Those that are numbers, the smallest first.
fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which this part of the sorted values lies, between two of them in proportion.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_values() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((spread.low, spread.median, spread.high), (1.75, 2.5, 3.25));
        assert_eq!(spread.text(2), "2.50 (1.75 to 3.25)");
        let one = Spread::of([7.0]).unwrap();
        assert_eq!((one.low, one.median, one.high, one.count), (7.0, 7.0, 7.0, 1));
    }

    #[test]
    fn the_middles_interval_is_the_sign_tests() {
        let of = |count: i32| median_interval((1..=count).map(f64::from));
        // From tables of the sign test at 5 %: so many values may be outside on each side.
        assert_eq!(of(5), None);
        assert_eq!(of(6), Some((1.0, 6.0)));
        assert_eq!(of(8), Some((1.0, 8.0)));
        assert_eq!(of(9), Some((2.0, 8.0)));
        assert_eq!(of(12), Some((3.0, 10.0)));
        assert_eq!(of(20), Some((6.0, 15.0)));
    }

    #[test]
    fn what_is_no_number_does_not_count() {
        assert_eq!(Spread::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Spread::of([f64::NAN, 1.0]).map(|spread| spread.count), Some(1));
    }
}
