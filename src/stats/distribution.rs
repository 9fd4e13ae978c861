//! Mean and percentiles.

use crate::model::Distribution;

/// Of measurements in any order; `None` of nothing. What is not a finite number is left out.
pub(super) fn distribution(mut measurements: Vec<f64>) -> Option<Distribution> {
    measurements.retain(|value| value.is_finite());
    measurements.sort_unstable_by(f64::total_cmp);
    let (min, max) = (*measurements.first()?, *measurements.last()?);
    let number = measurements.len();
    let at = |index: usize| measurements.get(index).copied();
    let median = if number.is_multiple_of(2) {
        // Half of each: their sum could be more than a number holds.
        at(number / 2 - 1)? / 2.0 + at(number / 2)? / 2.0
    } else {
        at(number / 2)?
    };
    Some(Distribution {
        mean: measurements.iter().sum::<f64>() / number as f64,
        min,
        median,
        // Nearest rank: the smallest that 95 of 100 do not exceed.
        percentile95: at((number * 95).div_ceil(100) - 1)?,
        max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_slow_tick_among_a_hundred_is_the_maximum_and_nothing_else() {
        let mut millis = vec![10.0; 100];
        millis.push(900.0);
        let found = distribution(millis).unwrap();
        assert_eq!(
            (found.min, found.median, found.percentile95, found.max),
            (10.0, 10.0, 10.0, 900.0)
        );
        assert!((found.mean - 1_900.0 / 101.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn few_measurements_have_exact_percentiles() {
        assert_eq!(distribution(vec![]), None);
        assert_eq!(distribution(vec![f64::NAN, f64::INFINITY]), None);
        let one = distribution(vec![7.0]).unwrap();
        assert_eq!([one.mean, one.min, one.median, one.percentile95, one.max], [7.0; 5]);
        let four = distribution(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((four.median, four.percentile95), (2.5, 4.0));
    }

    proptest! {
        /// By definition instead of by sorting: a percentile is a measurement that enough others do not exceed, and no smaller one is.
        #[test]
        fn percentiles_are_what_their_definition_says(millis in prop::collection::vec(0_u32..50, 1..200)) {
            let values: Vec<f64> = millis.iter().copied().map(f64::from).collect();
            let found = distribution(values.clone()).unwrap();
            let not_over = |limit: f64| values.iter().filter(|value| **value <= limit).count();
            let below = |limit: f64| values.iter().filter(|value| **value < limit).count();
            let number = values.len();
            prop_assert!(values.contains(&found.percentile95));
            prop_assert!(not_over(found.percentile95) * 100 >= number * 95);
            prop_assert!(below(found.percentile95) * 100 < number * 95);
            prop_assert!(values.contains(&found.min) && below(found.min) == 0);
            prop_assert!(values.contains(&found.max) && not_over(found.max) == number);
            prop_assert!(not_over(found.median) * 2 >= number && below(found.median) * 2 <= number);
            prop_assert_eq!(found.mean, values.iter().sum::<f64>() / number as f64);
        }
    }
}
