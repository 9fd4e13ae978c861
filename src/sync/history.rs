//! The newest records of an endless series: one thread adds, others copy.
//!
//! Adding must cost the same few stores whoever looks meanwhile, so there is no lock: a lock's holder can lose its processor. A record lies at its number modulo
//! the capacity, and a count says how many have been added. A copy takes everything that the count allows and then looks at the count again: what may have been
//! overwritten meanwhile is dropped from its old end, so a copy never waits and never repeats.

use super::primitive::{AtomicU64, Ordering, fence};

/// A ring of records of `N` words each, of a fixed capacity.
#[derive(Debug)]
pub struct History<const N: usize> {
    records: Box<[[AtomicU64; N]]>,
    /// How many records have ever been added.
    added: AtomicU64,
}

impl<const N: usize> History<N> {
    /// An empty one. Of `capacity` records (at least two) the oldest one cannot be copied: it may be about to be overwritten.
    pub fn new(capacity: usize) -> Self {
        History {
            records: (0..capacity.max(2))
                .map(|_| std::array::from_fn(|_| AtomicU64::new(0)))
                .collect(),
            added: AtomicU64::new(0),
        }
    }

    /// How many records have ever been added.
    pub fn added(&self) -> u64 {
        // Acquire: pairs with the Release store in `push`: the records that are counted are there.
        self.added.load(Ordering::Acquire)
    }

    fn place(&self, number: u64) -> Option<&[AtomicU64; N]> {
        // The remainder is below the length, which is a usize.
        self.records.get((number % self.records.len() as u64) as usize)
    }

    /// Adds a record; the oldest goes. By one thread at a time: two at once lose records.
    pub fn push(&self, record: [u64; N]) {
        // Relaxed: only this thread writes it.
        let number = self.added.load(Ordering::Relaxed);
        // Release: pairs with the Acquire fence in `copy_from`. Who reads a word of this record there sees the count of the push before, and knows that the record
        // that lay here may be gone.
        fence(Ordering::Release);
        if let Some(place) = self.place(number) {
            for (word, value) in place.iter().zip(record) {
                // Relaxed: published by the store below, and recalled by the fence above.
                word.store(value, Ordering::Relaxed);
            }
        }
        // Release: pairs with the Acquire loads in `added` and `copy_from`.
        self.added.store(number + 1, Ordering::Release);
    }

    /// The number of the first record that is still there, and all from it on, oldest first; none older than number `from`.
    pub fn copy_from(&self, from: u64) -> (u64, Vec<[u64; N]>) {
        let capacity = self.records.len() as u64;
        let added = self.added();
        let first = from.clamp(added.saturating_sub(capacity), added);
        let mut copies: Vec<[u64; N]> = (first..added)
            .filter_map(|number| self.place(number))
            // Relaxed: what was torn is dropped below.
            .map(|place| std::array::from_fn(|index| place.get(index).map_or(0, |word| word.load(Ordering::Relaxed))))
            .collect();
        // Acquire: pairs with the Release fence in `push`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence. One record more than is counted may be under way, in the place of the oldest.
        let whole_from = (self.added.load(Ordering::Relaxed) + 1).saturating_sub(capacity);
        let whole_from = whole_from.clamp(first, added);
        copies.drain(..(whole_from - first) as usize);
        (whole_from, copies)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_newest_records_are_kept_under_their_numbers() {
        let history = History::<2>::new(4);
        assert_eq!(history.copy_from(0), (0, vec![]));
        for number in 0..3 {
            history.push([number, number * 10]);
        }
        assert_eq!(history.copy_from(0), (0, vec![[0, 0], [1, 10], [2, 20]]));
        assert_eq!(history.copy_from(2), (2, vec![[2, 20]]));
        assert_eq!(history.copy_from(9), (3, vec![]));
        for number in 3..11 {
            history.push([number, number * 10]);
        }
        // The place of the oldest may be in the middle of being overwritten.
        assert_eq!(history.copy_from(0), (8, vec![[8, 80], [9, 90], [10, 100]]));
        assert_eq!(history.added(), 11);
    }

    #[test]
    fn a_copy_beside_a_writer_has_whole_records_in_order() {
        let history = History::<2>::new(64);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|number| history.push([number, !number])));
            let mut copies = 0;
            while history.added() < 200_000 || copies == 0 {
                let (first, records) = history.copy_from(0);
                copies += 1;
                for (place, record) in records.iter().enumerate() {
                    let number = first + place as u64;
                    assert_eq!(*record, [number, !number]);
                }
            }
        });
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use loom::sync::Arc;
    use loom::thread;

    use super::History;

    #[test]
    fn loom_a_copy_has_whole_records_under_their_numbers() {
        loom::model(|| {
            let history = Arc::new(History::<2>::new(2));
            history.push([0, 100]);
            let writer = {
                let history = Arc::clone(&history);
                thread::spawn(move || {
                    history.push([1, 101]);
                    history.push([2, 102]);
                })
            };
            let (first, records) = history.copy_from(0);
            for (place, record) in records.iter().enumerate() {
                let number = first + place as u64;
                assert_eq!(*record, [number, number + 100]);
            }
            writer.join().unwrap();
        });
    }
}
