//! How many random inputs, and which.

mod random;

pub use random::Random;

/// As many inputs as `SPARK_FUZZ_INPUTS` says, or `usual`, and what to make them of: the same for the same `SPARK_FUZZ_SEED`.
pub fn inputs(usual: u64) -> (u64, Random) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let inputs = number("SPARK_FUZZ_INPUTS").unwrap_or(usual);
    let seed = number("SPARK_FUZZ_SEED").unwrap_or(0x5eed).max(1);
    println!("{inputs} inputs from seed {seed}");
    (inputs, Random(seed))
}
