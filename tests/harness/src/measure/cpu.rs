//! Processor time of other processes, to the nanosecond.

use std::collections::BTreeMap;
use std::fs;

/// What each thread of a process has taken so far, from `/proc/PID/task/TID/schedstat` (proc(5)). The figures of a whole process are in hundredths of a second only.
#[derive(Clone, Debug, Default)]
pub struct CpuTime(BTreeMap<u32, (String, u64)>);

impl CpuTime {
    /// Of a process; nothing where there is none (any more).
    pub fn of(pid: u32) -> CpuTime {
        let threads = fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let threads = threads.filter_map(|thread| {
            let tid = thread.file_name().to_str()?.parse().ok()?;
            let name = fs::read_to_string(thread.path().join("comm")).ok()?;
            let nanos = nanos(&fs::read_to_string(thread.path().join("schedstat")).ok()?)?;
            Some((tid, (name.trim_end().to_owned(), nanos)))
        });
        CpuTime(threads.collect())
    }

    /// Nanoseconds since an earlier look, by the threads whose names are accepted. A thread that has ended meanwhile is left out.
    pub fn since(&self, earlier: &CpuTime, accept: impl Fn(&str) -> bool) -> u64 {
        let of_thread = |(tid, (name, nanos)): (&u32, &(String, u64))| {
            let before = earlier.0.get(tid).map_or(0, |(_, before)| *before);
            accept(name).then(|| nanos.saturating_sub(before))
        };
        self.0.iter().filter_map(of_thread).sum()
    }

    /// The threads whose names are accepted.
    pub fn tids(&self, accept: impl Fn(&str) -> bool) -> Vec<u32> {
        let threads = self.0.iter().filter(|(_, (name, _))| accept(name));
        threads.map(|(tid, _)| *tid).collect()
    }

    /// The thread of this name.
    pub fn thread(&self, wanted: &str) -> Option<u32> {
        self.0.iter().find(|(_, (name, _))| name == wanted).map(|(tid, _)| *tid)
    }
}

/// The first of schedstat's three numbers.
fn nanos(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(threads: &[(u32, &str, u64)]) -> CpuTime {
        CpuTime(
            threads
                .iter()
                .map(|(tid, name, nanos)| (*tid, ((*name).to_owned(), *nanos)))
                .collect(),
        )
    }

    #[test]
    fn threads_that_began_count_whole_and_names_are_chosen() {
        let before = of(&[(1, "MC_SERVER", 100), (2, "gone", 5)]);
        let after = of(&[(1, "MC_SERVER", 150), (3, "spark-sampler", 7)]);
        assert_eq!(after.since(&before, |_| true), 57);
        assert_eq!(after.since(&before, |name| name.starts_with("spark-")), 7);
        assert_eq!(after.thread("MC_SERVER"), Some(1));
        assert_eq!(after.thread("gone"), None);
        assert_eq!(after.tids(|name| name.starts_with("spark-")), [3]);
    }

    #[test]
    fn reads_the_kernels_line() {
        assert_eq!(nanos("123 45 6\n"), Some(123));
        assert_eq!(nanos(""), None);
        let own = CpuTime::of(std::process::id());
        assert!(own.since(&CpuTime::default(), |_| true) > 0);
    }
}
