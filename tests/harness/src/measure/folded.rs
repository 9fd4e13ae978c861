//! Stacks as other profilers write them.

use std::collections::BTreeMap;

/// Stacks, outermost function first, and how many samples had each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded(pub BTreeMap<Vec<String>, u64>);

impl Folded {
    /// Reads `a;b;c 12`, one stack in a line, as py-spy's `--format raw` and the standard library's `--collapsed` have it. Of the lines whose first part says
    /// `thread`, if they are to be told apart; that part is left out.
    pub fn parse(text: &str, thread: &str) -> Folded {
        let mut folded = Folded::default();
        for line in text.lines() {
            let Some((stack, count)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(count) = count.parse() else { continue };
            let mut frames = stack.split(';');
            if frames.next().is_some_and(|first| first.contains(thread)) {
                folded.add(frames.map(str::to_owned).collect(), count);
            }
        }
        folded
    }

    /// Reads what `perf script -F comm,tid,time,ip,sym,dso` prints: a line for the sample, a line for each frame, innermost first, an empty line.
    pub fn parse_perf(text: &str) -> Folded {
        let mut folded = Folded::default();
        for sample in text.split("\n\n") {
            let mut lines = sample.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            // The sample's own line.
            if lines.next().is_none() {
                continue;
            }
            let mut frames: Vec<String> = lines.filter_map(perf_frame).collect();
            frames.reverse();
            folded.add(frames, 1);
        }
        folded
    }

    /// How many samples there are.
    pub fn samples(&self) -> u64 {
        self.0.values().sum()
    }

    fn add(&mut self, frames: Vec<String>, count: u64) {
        *self.0.entry(frames).or_default() += count;
    }
}

/// `  15ea mill_weigh (/srv/mill.so)` without its address and file.
fn perf_frame(line: &str) -> Option<String> {
    let (_address, rest) = line.trim_start().split_once(' ')?;
    let file = rest.find(" (/").or_else(|| rest.rfind(" ("));
    Some(file.map_or(rest, |file| &rest[..file]).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(folded: &Folded) -> Vec<(String, u64)> {
        folded
            .0
            .iter()
            .map(|(stack, count)| (stack.join(">"), *count))
            .collect()
    }

    #[test]
    fn reads_one_threads_stacks() {
        let text = "thread (22): Main;poll (libc.so.6) 9\n\
                    thread (7);Level::tick (level.cpp:33);std::f<void, > (f.h:1);day (mill/work.py:57) 4\n\
                    thread (7);Level::tick (level.cpp:33);std::f<void, > (f.h:1);day (mill/work.py:57) 2\n\
                    thread (7) 11\n\
                    \n\
                    a line that is none\n";
        let folded = Folded::parse(text, "(7)");
        assert_eq!(
            stacks(&folded),
            [
                (String::new(), 11),
                (
                    "Level::tick (level.cpp:33)>std::f<void, > (f.h:1)>day (mill/work.py:57)".to_owned(),
                    6
                )
            ]
        );
        assert_eq!(folded.samples(), 17);
    }

    #[test]
    fn reads_the_standard_librarys_stacks() {
        let folded = Folded::parse(
            "tid:5;work.py:day:60;<native>;work.py:reap:114 71\ntid:6;x:y:1 1\n",
            "tid:5",
        );
        assert_eq!(
            stacks(&folded),
            [("work.py:day:60><native>>work.py:reap:114".to_owned(), 71)]
        );
    }

    #[test]
    fn reads_perfs_samples_from_the_outermost_frame() {
        let text = "MC_SERVER 22948 40340.837569: \n\
                    \t             166b mill_weigh (/tmp/mill.so)\n\
                    \t             6f79 [unknown] (/usr/lib/libffi.so.8)\n\
                    \t           2121de f<void (int)>::operator() (/x/with (brackets)/_python.so)\n\
                    \n\
                    MC_SERVER 22948 40340.841569: \n\
                    \t             185f mill_sow (/tmp/mill.so)\n\
                    \n";
        assert_eq!(
            stacks(&Folded::parse_perf(text)),
            [
                ("f<void (int)>::operator()>[unknown]>mill_weigh".to_owned(), 1),
                ("mill_sow".to_owned(), 1)
            ]
        );
    }
}
