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
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
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
    fn what_is_no_number_does_not_count() {
        assert_eq!(Spread::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Spread::of([f64::NAN, 1.0]).map(|spread| spread.count), Some(1));
    }
}
