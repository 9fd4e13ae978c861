//! A hash for small keys made of our own ids.
//!
//! A call tree looks up every frame of every sample that differs from the one before. The standard hash defends against keys that an
//! attacker picks to collide and takes most of that time; ids are given out by us, in order, so mixing their bits is enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from ids.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// An odd number without pattern: the golden ratio's fraction in 64 bits.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes words by multiplication; the high half, where a product mixes best, is folded into the low one, which maps use.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct IdHasher(u64);

impl IdHasher {
    fn mix(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(MULTIPLIER);
        self.0 = product ^ (product >> 32);
    }
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        // Maps take the place from the low bits and a tag from the high ones.
        self.0.wrapping_mul(MULTIPLIER).rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    use super::*;

    fn spread<K: Hash>(keys: impl Iterator<Item = K>) -> (usize, usize) {
        let build = BuildHasherDefault::<IdHasher>::default();
        let hashes: Vec<u64> = keys.map(|key| build.hash_one(key)).collect();
        let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
        let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        (low.len(), high.len())
    }

    /// Of 65,536 random hashes 63 % of the low halves differ; all 128 tags occur.
    #[test]
    fn keys_that_follow_each_other_are_spread() {
        for (low, high) in [
            spread((0..65_536_u32).map(|key| (key, 7_u32))),
            spread((0..65_536_u32).map(|key| (7_u32, key))),
            spread((0..256_u32).flat_map(|a| (0..256_u32).map(move |b| (a, b)))),
            spread((0..65_536_u64).map(|key| key * 4096)),
        ] {
            assert!(low > 36_000, "{low}");
            assert_eq!(high, 128);
        }
    }
}
