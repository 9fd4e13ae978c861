//! Numbers that look like chance and are the same in every run.

/// Marsaglia's xorshift: repeatable, and good enough to pick words and places.
pub struct Random(u64);

impl Random {
    /// What the input of this number is made of in a run with this seed: each input can be made again without those before it.
    pub fn of(seed: u64, number: u64) -> Self {
        // SplitMix64's finish: neighbours have nothing in common.
        let mut mixed = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((mixed ^ (mixed >> 31)).max(1))
    }

    /// The same for the same bytes: what is chosen while an input is looked at.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Random::of(u64::from(crc32fast::hash(bytes)), bytes.len() as u64)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `limit`; 0 where there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
