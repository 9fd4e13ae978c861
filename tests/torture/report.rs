//! What came of a run, and what is wrong with it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use harness::Profile;
use serde_json::Value;

use super::remains::{Remains, more};
use super::truth::{Judged, Truth, first};

/// The last commands, shown when something fails.
const COMMANDS: usize = 30;
/// Mappings may be more by this: arenas and libraries that stay.
const MAPPINGS: usize = 200;
/// Memory may grow by this between the middle of a run and its end, in KiB: what allocators keep of profiles of many sizes.
const GROWTH_KIB: u64 = 64 << 10;
/// Looks at memory that say something about growth.
const LOOKS: usize = 24;

/// Figures of all profiles together.
pub struct Report {
    seed: u64,
    begun: Instant,
    pub sessions: u64,
    pub reloads: u64,
    pub uploads: u64,
    pub profiles: u64,
    /// Memory after each session.
    pub resident_kib: Vec<u64>,
    samples: u64,
    lost: BTreeMap<String, u64>,
    ends: BTreeMap<String, u64>,
    audits: BTreeMap<String, u64>,
    states: BTreeMap<String, u64>,
    foreign: u64,
    judged: Judged,
    /// What the program said at its end.
    said: String,
    commands: Vec<String>,
    failures: Vec<String>,
}

/// Adds numbers of a group to those of other profiles.
fn add(sums: &mut BTreeMap<String, u64>, group: &Value) {
    for (name, value) in group.as_object().into_iter().flatten() {
        if let Some(value) = value.as_u64() {
            *sums.entry(name.clone()).or_default() += value;
        }
    }
}

impl Report {
    pub fn new(seed: u64) -> Self {
        Report {
            seed,
            begun: Instant::now(),
            sessions: 0,
            reloads: 0,
            uploads: 0,
            profiles: 0,
            resident_kib: Vec::new(),
            samples: 0,
            lost: BTreeMap::new(),
            ends: BTreeMap::new(),
            audits: BTreeMap::new(),
            states: BTreeMap::new(),
            foreign: 0,
            judged: Judged::default(),
            said: String::new(),
            commands: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Remembers a command.
    pub fn log(&mut self, line: &str) {
        if self.commands.last().is_none_or(|last| last != line) {
            println!("{:7.1} s  {line}", self.begun.elapsed().as_secs_f64());
        }
        self.commands.push(line.to_owned());
    }

    /// Takes a profile's figures, and judges its stacks.
    pub fn take(&mut self, truth: &Truth, profile: &Profile) {
        self.profiles += 1;
        let sampling = profile.extra("Sampling").unwrap();
        self.samples += sampling["samples"].as_u64().unwrap();
        self.foreign += sampling["signals passed to other handlers"].as_u64().unwrap();
        add(&mut self.lost, &sampling["samples lost by reason"]);
        add(&mut self.ends, &sampling["native stacks by how they end"]);
        let attribution = profile.extra("Python attribution").unwrap();
        let comparisons = &attribution["comparisons with the interpreter"];
        add(&mut self.audits, comparisons);
        for stack in comparisons["first stacks with one"].as_array().into_iter().flatten() {
            println!("a wrong frame: {stack}");
        }
        let state = attribution["reason"].as_str().or(attribution["state"].as_str());
        *self.states.entry(state.unwrap_or_default().to_owned()).or_default() += 1;
        let findings = profile.check();
        if !findings.is_sound() {
            self.failures.push(format!("a profile that is not sound: {findings:?}"));
        }
        truth.judge(profile, &mut self.judged);
    }

    /// Compares what the process has with what it had.
    pub fn judge_remains(&mut self, before: &Remains, after: &Remains) {
        let same = [
            ("tools", &before.tools, &after.tools),
            ("SIGPROF", &before.signal, &after.signal),
        ];
        for (what, before, after) in same {
            if before != after {
                self.failures
                    .push(format!("left behind, {what}: {before} became {after}"));
            }
        }
        let threads = more(&before.threads, &after.threads);
        if !threads.is_empty() {
            self.failures.push(format!("left behind, threads: {threads:?}"));
        }
        if after.footprint.descriptors > before.footprint.descriptors {
            let (before, after) = (before.footprint.descriptors, after.footprint.descriptors);
            self.failures
                .push(format!("left behind: {before} descriptors became {after}"));
        }
        if after.footprint.mappings > before.footprint.mappings + MAPPINGS {
            let (before, after) = (before.footprint.mappings, after.footprint.mappings);
            self.failures
                .push(format!("left behind: {before} mappings became {after}"));
        }
        println!("before {before:?}\nafter {after:?}");
        let looks = &self.resident_kib;
        if looks.len() >= LOOKS {
            // What is largest in a third does not depend on which profile was just made.
            let third = looks.len() / 3;
            let middle = looks[third..2 * third].iter().max().unwrap();
            let last = looks[2 * third..].iter().max().unwrap();
            if *last > middle + GROWTH_KIB {
                self.failures
                    .push(format!("memory grows: {middle} KiB, then {last} KiB"));
            }
        }
    }

    /// What the program says of itself.
    pub fn judge_work(&mut self, said: &str) {
        said.clone_into(&mut self.said);
        if !said.contains("undone [] failures []") {
            self.failures.push(format!("the program: {said}"));
        }
    }

    /// Prints everything; panics when something is wrong.
    pub fn finish(mut self) {
        if !self.judged.wrong.is_empty() {
            self.failures
                .push(format!("wrong frames:{}", first(&self.judged.wrong)));
        }
        if self.audits.get("showed a wrong frame").is_some_and(|wrong| *wrong > 0) {
            self.failures
                .push("comparisons with the interpreter showed a wrong frame".to_owned());
        }
        if self.judged.functions.is_empty() {
            self.failures.push("no function of the program was seen".to_owned());
        }
        println!("{self}");
        assert!(self.failures.is_empty(), "seed {}: {:#?}", self.seed, self.failures);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judged = &self.judged;
        let gaps: f64 = judged.gaps.values().sum();
        writeln!(
            out,
            "{} sessions, {} reloads, {} commands; {} profiles, {} of them uploaded; {} samples",
            self.sessions,
            self.reloads,
            self.commands.len(),
            self.profiles,
            self.uploads,
            self.samples
        )?;
        writeln!(out, "lost: {:?}", self.lost)?;
        writeln!(out, "stacks by how they end: {:?}", self.ends)?;
        writeln!(out, "signals passed to the foreign handler: {}", self.foreign)?;
        writeln!(out, "Python: {:?}; comparisons: {:?}", self.states, self.audits)?;
        writeln!(
            out,
            "{} pairs of {} functions judged; wrong: {}{}; with a gap: {:.1} of {:.0} ms{}",
            judged.pairs,
            judged.functions.len(),
            judged.wrong.len(),
            first(&judged.wrong),
            gaps,
            judged.millis,
            first(&judged.gaps)
        )?;
        writeln!(out, "the program: {}", self.said)?;
        writeln!(out, "memory after each session, KiB: {:?}", self.resident_kib)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.commands.len().saturating_sub(COMMANDS);
            println!(
                "seed {}, the last commands: {:#?}\n{self}",
                self.seed,
                &self.commands[last..]
            );
        }
    }
}
