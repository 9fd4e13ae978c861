//! Quantiles of durations without keeping them.

/// Counts in buckets that are an eighth of a power of two wide.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    counts: [u64; BUCKETS],
    total: u64,
}

const STEPS: u64 = 8;
const BUCKETS: usize = 64 * STEPS as usize;

impl Histogram {
    pub(super) fn new() -> Self {
        Histogram {
            counts: [0; BUCKETS],
            total: 0,
        }
    }

    fn bucket(value: u64) -> usize {
        let value = value.max(STEPS);
        let power = u64::from(value.ilog2());
        (power * STEPS + (value >> (power - 3)) % STEPS) as usize
    }

    /// The lower edge of a bucket, by which its values are reported.
    fn edge(bucket: usize) -> u64 {
        let (power, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
        if power < 3 { 0 } else { (STEPS + step) << (power - 3) }
    }

    pub(super) fn add(&mut self, value: u64) {
        if let Some(count) = self.counts.get_mut(Self::bucket(value)) {
            *count += 1;
            self.total += 1;
        }
    }

    /// The value below which `percent` percent lie, to an eighth of itself; 0 when there is none.
    pub(super) fn quantile(&self, percent: u64) -> u64 {
        let wanted = self.total * percent / 100;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen > wanted {
                return Self::edge(bucket);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_an_eighth() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(50), 0);
        (1..=10_000).for_each(|value| histogram.add(value));
        for percent in [1, 50, 90, 99] {
            let (found, exact) = (histogram.quantile(percent), percent * 100);
            assert!(
                found <= exact && exact <= found + found / 7 + 8,
                "{percent} %: {found}, not {exact}"
            );
        }
        histogram.add(u64::MAX);
        histogram.add(0);
    }
}
