//! Which inputs a process is busy with, where others can see it after its death.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// No input.
const NONE: u64 = u64::MAX;

/// One number per thread, in a file.
pub struct Progress {
    file: File,
    threads: usize,
}

impl Progress {
    pub fn create(path: &Path, threads: usize) -> Self {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        let progress = Progress { file, threads };
        (0..threads).for_each(|thread| progress.set(thread, NONE));
        progress
    }

    pub fn open(path: &Path, threads: usize) -> Self {
        let file = File::options().read(true).write(true).open(path).unwrap();
        Progress { file, threads }
    }

    fn set(&self, thread: usize, number: u64) {
        self.file
            .write_all_at(&number.to_le_bytes(), 8 * thread as u64)
            .unwrap();
    }

    pub fn begins(&self, thread: usize, number: u64) {
        self.set(thread, number);
    }

    pub fn has_done(&self, thread: usize) {
        self.set(thread, NONE);
    }

    /// It is this thread's input that is to blame.
    pub fn blame(&self, culprit: usize) {
        (0..self.threads)
            .filter(|thread| *thread != culprit)
            .for_each(|thread| self.set(thread, NONE));
    }

    /// The inputs that have begun and not ended, by thread.
    pub fn running(&self) -> Vec<Option<u64>> {
        let mut bytes = vec![0; 8 * self.threads];
        self.file.read_exact_at(&mut bytes, 0).unwrap();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let numbers = bytes.chunks_exact(8).map(number);
        numbers.map(|number| (number != NONE).then_some(number)).collect()
    }
}
