//! What looks after targets finds every fault, and says how to repeat it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::random::Random;
use super::run::fuzz;
use super::target::Target;

/// What the guilty input does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Panic,
    Abort,
    Memory,
    Hang,
}

struct Faulty<const FAULT: u8> {
    seeds: [Vec<u8>; 1],
}

const FAULTS: [(Fault, &str); 4] = [
    (Fault::Panic, "faults::a_panic_is_found"),
    (Fault::Abort, "faults::a_process_that_dies_is_found"),
    (Fault::Memory, "faults::memory_beyond_the_limit_is_found"),
    (Fault::Hang, "faults::what_hangs_is_found"),
];

impl<const FAULT: u8> Target for Faulty<FAULT> {
    const TEST: &'static str = FAULTS[FAULT as usize].1;
    const INPUTS: u64 = 1_000_000;
    const THREADS: usize = 3;
    const MEMORY_BYTES: u64 = 64 << 20;
    const HANG: Duration = Duration::from_secs(2);

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        random.next().to_le_bytes().to_vec()
    }

    fn check(&self, input: &[u8]) {
        // One in 256.
        if input[0] != 0 {
            return;
        }
        match FAULTS[FAULT as usize].0 {
            Fault::Panic => panic!("the guilty one"),
            Fault::Abort => std::process::abort(),
            Fault::Memory => drop(std::hint::black_box(vec![1_u8; 1 << 30])),
            Fault::Hang => loop {
                std::thread::park();
            },
        }
    }

    fn finish(&self, _inputs: u64) -> String {
        String::new()
    }
}

fn is_found<const FAULT: u8>() {
    let outcome = catch_unwind(AssertUnwindSafe(|| fuzz(&Faulty::<FAULT> { seeds: [vec![1]] })));
    if std::env::var_os("SPARK_FUZZ_WORK").is_some() || std::env::var_os("SPARK_FUZZ_FILE").is_some() {
        // This is the process that is looked after, and the guilty input has not ended it.
        outcome.unwrap();
        return;
    }
    let message = outcome.unwrap_err().downcast::<String>().unwrap();
    let file = message
        .lines()
        .find_map(|line| line.strip_prefix("again: ./dev fuzz faults --file "))
        .unwrap();
    let input = std::fs::read(file).unwrap();
    assert!(input.len() == 8 && input[0] == 0, "{input:?} is not guilty");
    std::fs::remove_file(file).unwrap();
}

#[test]
fn a_panic_is_found() {
    is_found::<0>();
}

#[test]
fn a_process_that_dies_is_found() {
    is_found::<1>();
}

#[test]
fn memory_beyond_the_limit_is_found() {
    is_found::<2>();
}

#[test]
fn what_hangs_is_found() {
    is_found::<3>();
}
