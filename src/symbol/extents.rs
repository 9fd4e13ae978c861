//! Where functions begin and end, from unwind data.
//!
//! # Problem
//! A game server is shipped without symbols. Its call sites could only be shown as addresses, and one function that is called from forty
//! places or is itself seen at forty instructions would be forty frames.
//!
//! # Algorithm
//! Exceptions need unwind data, so a stripped file still tells the extent of nearly every function (`.eh_frame`). All addresses of one
//! function are shown as its first address. Nothing is guessed: an address outside all extents stands for itself.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

/// Extents of functions, sorted, none inside another.
#[derive(Debug, Default)]
pub struct Extents {
    ranges: Vec<Range<u64>>,
}

impl Extents {
    /// The extents in an `.eh_frame` section that is linked at `address`. Damage ends the list where it begins.
    pub fn of_eh_frame(section: &[u8], address: u64) -> Self {
        let mut frames = EhFrame::new(section, LittleEndian);
        frames.set_address_size(8);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut entries = frames.entries(&bases);
        let mut ranges = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(fde) = partial.parse(|_, bases, offset| frames.cie_from_offset(bases, offset)) else {
                continue;
            };
            let start = fde.initial_address();
            // A linker that drops a function may leave its entry at address 0.
            if start != 0 && fde.len() > 0 {
                ranges.push(start..start.saturating_add(fde.len()));
            }
        }
        Extents::new(ranges)
    }

    fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        // Overlapping entries contradict each other: the later one is not believed.
        ranges.dedup_by(|later, kept| later.start < kept.end);
        ranges.shrink_to_fit();
        Extents { ranges }
    }

    /// First address of the function that holds `address`.
    pub fn start_of(&self, address: u64) -> Option<u64> {
        let index = self
            .ranges
            .partition_point(|range| range.start <= address)
            .checked_sub(1)?;
        self.ranges
            .get(index)
            .filter(|range| range.contains(&address))
            .map(|range| range.start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_between_functions_belong_to_none() {
        let extents = Extents::new(vec![30..40, 10..20, 15..25, 20..22]);
        let starts: Vec<Option<u64>> = [9, 10, 19, 20, 22, 30, 40]
            .map(|address| extents.start_of(address))
            .to_vec();
        assert_eq!(starts, [None, Some(10), Some(10), Some(20), None, Some(30), None]);
    }

    proptest! {
        #[test]
        fn any_section_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), address in any::<u64>()) {
            Extents::of_eh_frame(&bytes, address).start_of(address);
        }
    }
}
