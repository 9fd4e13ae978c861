//! Rules that were derived before.
//!
//! **Problem.** Deriving a rule from unwind data takes a search in an index of many thousand functions and an interpreter run, in memory that nobody else touches: some
//! microseconds in a handler, which finds all caches cold.
//!
//! **Algorithm.** Two tables without chains. The addresses of calls under way come again and again, so one table is by address, one comparison each. The
//! place where a thread was interrupted is hardly ever the same twice, but a rule holds for a range of addresses, mostly a function without its first and last
//! instructions: the other table has the last rule of each block of addresses with its range. Interrupted places are looked for only there, so that they
//! push no call's address out.
//!
//! Everything is known by the module's id as well, which is never given twice: no change of modules can make a remembered rule wrong.
//!
//! **Price.** 128 KiB, of which a server's usual stacks touch some ten.

use std::ops::Range;

use super::rule::{Kind, Rule};
use crate::limits;
use crate::model::ModuleId;

#[derive(Clone, Copy, Debug)]
struct CallRule {
    address: u64,
    module: ModuleId,
    rule: Rule,
}

#[derive(Clone, Copy, Debug)]
struct RangeRule {
    start: u64,
    length: u32,
    module: ModuleId,
    rule: Rule,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct RuleCache {
    calls: Box<[CallRule; limits::CACHED_RULES]>,
    ranges: Box<[RangeRule; limits::CACHED_RANGES]>,
}

/// Addresses of one block share a place.
const BLOCK_BITS: u32 = 7;

// The remainders are places of the arrays, which the compiler sees.
fn call_place(address: u64) -> usize {
    (address ^ address >> 13) as usize % limits::CACHED_RULES
}

fn range_place(address: u64) -> usize {
    let block = address >> BLOCK_BITS;
    (block ^ block >> 11) as usize % limits::CACHED_RANGES
}

impl RuleCache {
    /// All empty; every page is written, so that no first touch happens in a handler.
    pub(super) fn new() -> Self {
        // No code is at this address.
        let call = CallRule {
            address: u64::MAX,
            module: ModuleId::NONE,
            rule: Rule::plain(Kind::Missing),
        };
        let range = RangeRule {
            start: u64::MAX,
            length: 0,
            module: ModuleId::NONE,
            rule: Rule::plain(Kind::Missing),
        };
        RuleCache {
            calls: Box::new([call; limits::CACHED_RULES]),
            ranges: Box::new([range; limits::CACHED_RANGES]),
        }
    }

    /// The rule at a call's address.
    #[inline(always)]
    pub(super) fn at_call(&self, module: ModuleId, address: u64) -> Option<Rule> {
        let known = self.calls.get(call_place(address))?;
        (known.address == address && known.module == module).then_some(known.rule)
    }

    /// The rule of a range around the address.
    #[inline(always)]
    pub(super) fn around(&self, module: ModuleId, address: u64) -> Option<Rule> {
        let known = self.ranges.get(range_place(address))?;
        (address.wrapping_sub(known.start) < u64::from(known.length) && known.module == module).then_some(known.rule)
    }

    pub(super) fn keep_call(&mut self, module: ModuleId, address: u64, rule: Rule) {
        if let Some(place) = self.calls.get_mut(call_place(address)) {
            *place = CallRule { address, module, rule };
        }
    }

    /// `range` holds `address`.
    pub(super) fn keep_range(&mut self, module: ModuleId, address: u64, range: Range<u64>, rule: Rule) {
        if let Some(place) = self.ranges.get_mut(range_place(address)) {
            *place = RangeRule {
                start: range.start,
                length: u32::try_from(range.end.saturating_sub(range.start)).unwrap_or(u32::MAX),
                module,
                rule,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_address_and_by_range_and_never_for_another_module() {
        let (one, other) = (ModuleId::new(1), ModuleId::new(2));
        let (root, signal) = (Rule::plain(Kind::Root), Rule::plain(Kind::Signal));
        let mut cache = RuleCache::new();
        assert_eq!(cache.at_call(one, 0x1000), None);
        assert_eq!(cache.around(one, 0x1000), None);
        cache.keep_call(one, 0x1000, root);
        assert_eq!(cache.at_call(one, 0x1000), Some(root));
        assert_eq!(cache.at_call(other, 0x1000), None);
        assert_eq!(cache.at_call(one, 0x1001), None);
        cache.keep_range(one, 0x1010, 0x1010..0x1020, signal);
        for address in [0x1010, 0x101f] {
            assert_eq!(cache.around(one, address), Some(signal));
            assert_eq!(cache.around(other, address), None);
        }
        for address in [0x100f, 0x1020, 0x1000_1010] {
            assert_eq!(cache.around(one, address), None, "{address:x}");
        }
        assert_eq!(
            cache.around(ModuleId::NONE, u64::MAX),
            None,
            "an empty place is nobody's"
        );
        // A range of megabytes is known from where it was asked about.
        cache.keep_range(one, 0x10_0000, 0..0x1_0000_0000, root);
        assert_eq!(cache.around(one, 0x10_0001), Some(root));
    }
}
