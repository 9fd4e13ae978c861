//! What the spark viewer stumbles over.
//!
//! The viewer checks nothing: a missing message is a page that never appears, a wrong count is a tree without numbers. Each rule here was seen
//! in a browser. A problem crashes, blanks or falsifies the page; a warning disfigures it.

mod health;
mod metadata;
mod threads;

use endstone_spark::export::pb::SamplerData;
use std::collections::BTreeSet;
use std::fmt;

pub(crate) use health::check_health;

/// What is wrong with a profile; nothing in the best case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What crashes, blanks or falsifies the page.
    pub problems: Vec<String>,
    /// What looks bad.
    pub warnings: Vec<String>,
}

impl Findings {
    /// Whether the profile opens and shows what it should.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Whether there is nothing to say about it at all.
    pub fn is_perfect(&self) -> bool {
        self.problems.is_empty() && self.warnings.is_empty()
    }

    fn problem(&mut self, text: impl Into<String>) {
        push_once(&mut self.problems, text.into());
    }

    fn warn(&mut self, text: impl Into<String>) {
        push_once(&mut self.warnings, text.into());
    }

    /// A message that the page reads without looking whether it is there.
    fn need<T>(&mut self, message: Option<&T>, name: &str) {
        if message.is_none() {
            self.problem(format!("{name} is missing: the page crashes"));
        }
    }
}

fn push_once(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for text in &self.problems {
            writeln!(f, "problem: {text}")?;
        }
        for text in &self.warnings {
            writeln!(f, "warning: {text}")?;
        }
        Ok(())
    }
}

/// Looks at everything.
pub(crate) fn check(data: &SamplerData) -> Findings {
    let mut findings = Findings::default();
    let Some(metadata) = &data.metadata else {
        findings.problem("metadata is missing: the page crashes");
        return findings;
    };
    metadata::check(metadata, &mut findings);
    windows(data, &mut findings);
    threads::check(data, &mut findings);
    sources(data, &mut findings);
    findings
}

fn windows(data: &SamplerData, findings: &mut Findings) {
    let windows = &data.time_windows;
    if windows.len() < 2 {
        return;
    }
    for window in windows {
        if !data.time_window_statistics.contains_key(window) {
            findings.problem(format!("window {window} has no statistics: the page crashes"));
        }
    }
    if windows.windows(2).any(|pair| pair[0].checked_add(1) != Some(pair[1])) {
        findings.warn("windows are not contiguous, ascending minutes: the graph is clipped");
    }
    let first = windows
        .first()
        .and_then(|window| data.time_window_statistics.get(window));
    if first.is_some_and(|first| {
        first.ticks == 0 && first.tps == 0.0 && first.cpu_process == 0.0 && first.mspt_median == 0.0
    }) {
        findings.warn("the first window's statistics are all zero: the graph stays empty");
    }
}

/// The version of a source is looked up by the text that the maps hold.
fn sources(data: &SamplerData, findings: &mut Findings) {
    let known: BTreeSet<&str> = data
        .metadata
        .iter()
        .flat_map(|metadata| metadata.sources.values())
        .map(|source| source.name.as_str())
        .collect();
    for map in [&data.class_sources, &data.method_sources, &data.line_sources] {
        for source in map.values().filter(|source| !known.contains(source.as_str())) {
            findings.warn(format!("source '{source}' is not described in metadata.sources"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sound;
    use endstone_spark::export::pb::WindowStatistics;

    #[test]
    fn a_good_profile_passes() {
        let findings = check(sound::profile().data());
        assert!(findings.is_perfect(), "{findings}");
    }

    #[test]
    fn metadata_is_needed() {
        let mut data = sound::profile().data().clone();
        data.metadata = None;
        let findings = check(&data);
        assert!(!findings.is_sound());
        assert!(findings.to_string().contains("problem: metadata is missing"));
    }

    #[test]
    fn each_window_needs_statistics_when_there_are_several() {
        sound::expect_problem("window 31 has no statistics", |data| {
            sound::add_window(data, 31);
        });
    }

    #[test]
    fn windows_are_consecutive() {
        sound::expect_warning("not contiguous", |data| {
            sound::add_window(data, 32);
            data.time_window_statistics.insert(32, WindowStatistics::default());
        });
    }

    #[test]
    fn the_first_window_is_not_all_zero() {
        sound::expect_warning("all zero", |data| {
            sound::add_window(data, 31);
            data.time_window_statistics.insert(30, WindowStatistics::default());
            data.time_window_statistics.insert(31, WindowStatistics::default());
        });
    }

    #[test]
    fn sources_are_described() {
        for map in 0..3 {
            sound::expect_warning("source 'ghost'", |data| {
                let maps = [
                    &mut data.class_sources,
                    &mut data.method_sources,
                    &mut data.line_sources,
                ];
                maps.into_iter()
                    .nth(map)
                    .unwrap()
                    .insert("a.b".to_owned(), "ghost".to_owned());
            });
        }
    }

    #[test]
    fn a_finding_is_said_once() {
        let mut findings = Findings::default();
        findings.warn("twice");
        findings.warn("twice");
        assert_eq!(findings.warnings.len(), 1);
    }
}
