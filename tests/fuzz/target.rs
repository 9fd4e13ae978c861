//! What is given random inputs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::random::Random;

/// A reader of something that others write.
pub trait Target: Sync {
    /// The test's name in this program.
    const TEST: &'static str;
    /// Inputs of a usual test run: some seconds.
    const INPUTS: u64;
    /// Inputs at the same time. More than one where an input mostly waits.
    const THREADS: usize = 1;
    /// The memory that a process may take which does nothing else, in bytes. What an input makes it take beyond that ends it.
    const MEMORY_BYTES: u64;
    /// What takes this long hangs, on any machine: an input takes micro- to milliseconds, and an upload that is tried again some seconds.
    const HANG: Duration = Duration::from_secs(180);

    /// Good inputs. Each is tried as it is, before others are made of them.
    fn seeds(&self) -> &[Vec<u8>];

    /// An input of this chance, and nothing else.
    fn make(&self, random: &mut Random) -> Vec<u8>;

    /// Reads an input. Panics where what comes of it is not what others count on.
    fn check(&self, input: &[u8]);

    /// What came of all; panics where the inputs were too bad to reach anything.
    fn finish(&self, inputs: u64) -> String;
}

/// The input of this number in a run with this seed.
pub fn input(target: &impl Target, seed: u64, number: u64) -> Vec<u8> {
    match target.seeds().get(usize::try_from(number).unwrap_or(usize::MAX)) {
        Some(seed) => seed.clone(),
        None => target.make(&mut Random::of(seed, number)),
    }
}

/// The files of a folder of `tests/fuzz/corpus`, in the order of their names.
pub fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Gives a file this content. In place: file systems sync one that is emptied first.
pub fn rewrite(path: &Path, content: &[u8]) {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .unwrap();
    file.write_all_at(content, 0).unwrap();
    file.set_len(content.len() as u64).unwrap();
}

/// Where messages go must not be upset by them.
pub fn presentable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || c == '§')
}
