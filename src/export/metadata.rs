//! How and where a profile was taken.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::frames::ModuleCoverage;
use super::pb;
use super::server::{Runtime, ServerReport};
use super::shorten::bounded;
use super::sources::Source;
use super::stalls::StallReport;
use crate::limits::{COMMENT_CHARS, NAME_CHARS, PYTHON_FRAMES};
use crate::model::{
    Category, Grouping, PythonDiagnostics, PythonState, RecoveryFigures, SampleLoss, SamplerDiagnostics, StackEnd,
    TickFigures, Tid, View, WallMillis, build,
};
use crate::profile::MergeStats;

/// Who asked for a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Creator {
    /// The console, or a timer.
    Console,
    /// A player.
    Player {
        /// Their name.
        name: String,
        /// Their UUID as text.
        unique_id: String,
    },
}

/// Which threads were sampled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ThreadSelection {
    /// All.
    All,
    /// These.
    Threads(Vec<Tid>),
    /// Those whose names match one of these patterns.
    Patterns(Vec<String>),
}

/// Everything about a profile besides its trees.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfileMetadata {
    /// Who asked for it.
    pub creator: Creator,
    /// When it was started.
    pub started: WallMillis,
    /// When it was stopped.
    pub ended: WallMillis,
    /// Sampling interval in microseconds.
    pub interval_micros: u64,
    /// Ticks from start to stop.
    pub ticks: u64,
    /// The owner's words; may be empty.
    pub comment: String,
    /// The server.
    pub server: ServerReport,
    /// Which threads were sampled.
    pub selection: ThreadSelection,
    /// What is shown.
    pub view: View,
    /// SHA-256 of the server's executable, with which other tools can tell whose addresses these are.
    pub server_sha256: Option<String>,
    /// Whether time in which threads wait was left out.
    pub ignore_sleeping: bool,
    /// The ticks, if only those that take longer than so many microseconds are kept.
    pub slow_ticks: Option<(u64, TickFigures)>,
    /// When the server did not tick.
    pub stalls: StallReport,
    /// The server's plugins.
    pub sources: Vec<Source>,
    /// The native side.
    pub sampler: SamplerDiagnostics,
    /// What became of the Python entries of all samples.
    pub merge: MergeStats,
    /// The Python side.
    pub python: PythonDiagnostics,
    /// How it was recovered, if it was.
    pub recovery: Option<RecoveryFigures>,
}

impl ProfileMetadata {
    /// As spark's message, without the sources. `unknown_codes` is the number of Python code objects in the trees that nothing is known of, `modules` those with frames in the trees.
    pub(super) fn encode(&self, unknown_codes: u64, modules: &[ModuleCoverage]) -> pb::SamplerMetadata {
        let ticks = i32::try_from(self.ticks).unwrap_or(i32::MAX);
        pb::SamplerMetadata {
            creator: Some(self.creator.encode()),
            start_time: self.started.0,
            interval: i32::try_from(self.interval_micros).unwrap_or(i32::MAX),
            thread_dumper: Some(self.selection.encode()),
            data_aggregator: Some(pb::sampler_metadata::DataAggregator {
                r#type: match self.slow_ticks {
                    None => pb::sampler_metadata::data_aggregator::Type::Simple,
                    Some(_) => pb::sampler_metadata::data_aggregator::Type::Ticked,
                }
                .into(),
                thread_grouper: grouper(self.view.grouping).into(),
                // Both 0 without a threshold: the viewer would say that so many ticks were over it.
                tick_length_threshold: self
                    .slow_ticks
                    .map_or(0, |(micros, _)| i64::try_from(micros).unwrap_or(i64::MAX)),
                number_of_included_ticks: self
                    .slow_ticks
                    .map_or(0, |(_, ticks)| i32::try_from(ticks.kept).unwrap_or(i32::MAX)),
            }),
            comment: bounded(&self.comment, COMMENT_CHARS),
            platform_metadata: Some(self.server.platform()),
            platform_statistics: self.server.platform_statistics(),
            system_statistics: Some(self.server.system_statistics(&self.runtime())),
            server_configurations: self.server.configurations(),
            end_time: self.ended.0,
            number_of_ticks: ticks,
            sources: BTreeMap::new(),
            extra_platform_metadata: self.extra(unknown_codes, modules),
            sampler_mode: pb::sampler_metadata::SamplerMode::Execution.into(),
            sampler_engine: pb::sampler_metadata::SamplerEngine::Async.into(),
            sampler_engine_version: format!("endstone-spark {}", build::VERSION),
        }
    }

    fn runtime(&self) -> Runtime {
        let python = &self.python;
        let version = match &python.state {
            PythonState::Absent => "none, and no Python".to_owned(),
            _ => format!("{} {}", python.implementation, python.version),
        };
        let (what, from) = match &python.state {
            PythonState::Absent => ("native frames only", "the server"),
            PythonState::Active | PythonState::Degraded(_) => ("functions", "sys.monitoring"),
            _ => ("native frames only", "the interpreter"),
        };
        Runtime { version, what, from }
    }

    fn extra(&self, unknown_codes: u64, modules: &[ModuleCoverage]) -> BTreeMap<String, String> {
        let mut extra = BTreeMap::from([
            ("Native modules".to_owned(), native_modules(modules).to_string()),
            ("Sampling".to_owned(), self.sampling().to_string()),
            (
                "Python attribution".to_owned(),
                self.attribution(unknown_codes).to_string(),
            ),
        ]);
        if let Some(recovery) = &self.recovery {
            let figures = json!({
                "files read": recovery.segments,
                "files given up before": recovery.segments_given_up,
                "records read": recovery.records,
                "records damaged": recovery.damaged,
                "samples not written in time": recovery.samples_dropped,
            });
            extra.insert("Recovery".to_owned(), figures.to_string());
        }
        if let Some((micros, ticks)) = &self.slow_ticks {
            extra.insert("Slow ticks".to_owned(), slow_ticks(*micros, ticks).to_string());
        }
        if self.stalls.count > 0 {
            extra.insert("Stalls".to_owned(), self.stalls.figures().to_string());
        }
        if let Some(hash) = &self.server_sha256 {
            extra.insert("Server executable".to_owned(), json!({ "SHA-256": hash }).to_string());
        }
        extra.extend(self.server.extra());
        extra
    }

    fn sampling(&self) -> Value {
        let sampler = &self.sampler;
        let losses: serde_json::Map<String, Value> = SampleLoss::ALL
            .iter()
            .map(|reason| (reason.name().to_owned(), sampler.losses.get(*reason).into()))
            .collect();
        let ends: serde_json::Map<String, Value> = StackEnd::ALL
            .iter()
            .zip(sampler.ends)
            .map(|(end, count)| (end.name().to_owned(), count.into()))
            .collect();
        let mut figures = json!({
            "backend": "SIGPROF per thread, unwound in the handler",
            "profiler version": build::VERSION,
            "samples": sampler.samples,
            "samples repeated for idle threads": sampler.repeated,
            "time asleep": if self.ignore_sleeping { "left out" } else { "shown" },
            "samples left out because asleep": sampler.asleep,
            "milliseconds left out because asleep": sampler.asleep_nanos / 1_000_000,
            "threads": sampler.threads_ever,
            "threads at the end": sampler.threads,
            "threads refused": sampler.threads_refused,
            "rounds": sampler.rounds,
            "rounds late": sampler.rounds_late,
            "interval asked for, microseconds": self.interval_micros,
            "interval measured, microseconds": sampler.interval_nanos / 1_000,
            "milliseconds the process was stopped": sampler.stopped_nanos / 1_000_000,
            "system calls interrupted": sampler.interrupted_calls,
            "samples lost": sampler.losses.total(),
            "samples lost by reason": losses,
            "native stacks by how they end": ends,
            "signals passed to other handlers": sampler.foreign_signals,
            "handler time, median nanoseconds": sampler.handler.median_nanos,
            "handler time, 99th percentile nanoseconds": sampler.handler.p99_nanos,
            "handler time by part, median and 99th percentile nanoseconds": {
                "preparing": [sampler.handler_prepare.median_nanos, sampler.handler_prepare.p99_nanos],
                "walking": [sampler.handler_walk.median_nanos, sampler.handler_walk.p99_nanos],
                "Python and handing over": [sampler.handler_python.median_nanos, sampler.handler_python.p99_nanos],
            },
            "handler time, all runs, microseconds": sampler.handler_total_nanos / 1_000,
            "native frames walked": sampler.frames_walked,
            "unwinding rules derived": sampler.rules_derived,
        });
        if let Some(commit) = build::COMMIT {
            figures["profiler commit"] = commit.into();
        }
        if let Some(id) = build::build_id() {
            figures["profiler build id"] = id.into();
        }
        figures
    }

    fn attribution(&self, unknown_codes: u64) -> Value {
        let python = &self.python;
        let (state, reason) = match &python.state {
            PythonState::Absent => ("absent", "there is no Python in the server's process"),
            PythonState::Unsupported(reason) => ("unsupported", reason.as_str()),
            PythonState::Attaching => ("not attached", "the session ended before the interpreter was ready"),
            PythonState::Active => ("active", ""),
            PythonState::Degraded(reason) => ("degraded", reason.as_str()),
        };
        let mut value = json!({
            "backend": "sys.monitoring (PEP 669)",
            "state": state,
        });
        let Some(map) = value.as_object_mut() else { return value };
        if !reason.is_empty() {
            map.insert("reason".to_owned(), reason.into());
        }
        if !python.version.is_empty() {
            let version = format!("{} {}", python.implementation, python.version);
            map.insert("version".to_owned(), version.trim().into());
        }
        if matches!(python.state, PythonState::Active | PythonState::Degraded(_)) {
            self.attribution_figures(map, unknown_codes);
        }
        if python.swapping_threads > 0 {
            map.insert(
                "threads that swap stacks, shown natively".to_owned(),
                json!({"number": python.swapping_threads, "first of them": python.swapping}),
            );
        }
        if python.subinterpreters > 0 {
            map.insert(
                "subinterpreters, shown natively".to_owned(),
                python.subinterpreters.into(),
            );
        }
        value
    }

    fn attribution_figures(&self, map: &mut serde_json::Map<String, Value>, unknown_codes: u64) {
        let (python, sampler, merge) = (&self.python, &self.sampler, &self.merge);
        let codes: serde_json::Map<String, Value> = Category::ALL
            .iter()
            .zip(python.codes)
            .map(|(category, count)| (category.name().to_owned(), count.into()))
            .collect();
        let enters = python.events.start + python.events.resume + python.events.throw;
        let figures = json!({
            "events": {
                "start": python.events.start,
                "resume": python.events.resume,
                "throw": python.events.throw,
                "return": python.events.ret,
                "yield": python.events.yielded,
                "unwind": python.events.unwind,
            },
            "threads registered": python.threads,
            "threads refused": python.threads_refused,
            "threads with the id of a dead one": python.threads_reused,
            "deepest stack": python.deepest,
            "deepest overflow": (python.deepest as usize).saturating_sub(PYTHON_FRAMES),
            "stacks truncated": python.truncations,
            "stale entries dropped": python.stale_dropped,
            "leave events without entry": python.unmatched_leaves,
            "shadow stack reads tried": sampler.python_snapshots + sampler.python_torn,
            "shadow stacks read": sampler.python_snapshots,
            "shadow stacks torn": sampler.python_torn,
            "samples with Python frames": sampler.attributed,
            "samples without Python frames": sampler.samples.saturating_sub(sampler.attributed),
            "frames placed": merge.placed,
            "frames without native frame": merge.missed,
            "frames not placed yet": merge.unanchored,
            "frames in omitted middles": merge.in_gap,
            "frames beyond unfinished stacks": merge.beyond_end,
            "frames beyond the depth limit": merge.hidden,
            "code objects": codes,
            "code objects unknown": unknown_codes,
            "code cache hits": enters.saturating_sub(python.cache_misses),
            "code cache misses": python.cache_misses,
            "comparisons with the interpreter": {
                "made": python.audits.made,
                "showed a wrong frame": python.audits.disagreed,
                "wrong frames": python.audits.wrong_frames,
                "first stacks with one": python.wrong_stacks,
                "frames missing": python.audits.missing_frames,
                "generators that only pass an exception on": python.audits.delegating_frames,
                "frames without a place that did not run": python.audits.unplaced_frames,
            },
            "frames that ran before their thread was seen": python.audits.found_running,
            "placed of these": python.audits.found_running_placed,
            "registration failures": python.registration_failures,
            "callback failures": python.callback_failures,
        });
        if let Value::Object(figures) = figures {
            map.extend(figures);
        }
    }
}

/// What became of ticks and their samples.
fn slow_ticks(micros: u64, ticks: &TickFigures) -> Value {
    json!({
        "kept are ticks over, microseconds": micros,
        "ticks kept": ticks.kept,
        "ticks seen": ticks.seen,
        "longest tick, microseconds": ticks.longest_nanos / 1_000,
        "samples kept": ticks.samples_kept,
        "samples dropped": ticks.samples_dropped,
        "dropped at the end of a slow tick": ticks.samples_uncertain,
        "dropped because their tick had not ended": ticks.samples_unfinished,
        "samples that found no room to wait": ticks.samples_without_room,
    })
}

/// By class: where the names of native frames come from, and why some are missing.
fn native_modules(modules: &[ModuleCoverage]) -> Value {
    let mut all = serde_json::Map::new();
    for module in modules {
        let mut figures = serde_json::Map::new();
        figures.insert("addresses with name".to_owned(), module.named.into());
        figures.insert("addresses without name".to_owned(), module.nameless.into());
        let texts = [("build id", &module.build_id), ("no names because", &module.problem)];
        for (key, text) in texts {
            if let Some(text) = text {
                figures.insert(key.to_owned(), text.as_str().into());
            }
        }
        // A library that was loaded twice, or two of one name.
        let mut key = module.class.clone();
        let mut number = 2;
        while all.contains_key(&key) {
            key = format!("{} #{number}", module.class);
            number += 1;
        }
        all.insert(key, figures.into());
    }
    all.into()
}

impl Creator {
    pub(super) fn encode(&self) -> pb::CommandSenderMetadata {
        use pb::command_sender_metadata::Type;
        match self {
            Creator::Console => pb::CommandSenderMetadata {
                r#type: Type::Other.into(),
                name: "Console".to_owned(),
                unique_id: String::new(),
            },
            Creator::Player { name, unique_id } => pb::CommandSenderMetadata {
                r#type: Type::Player.into(),
                name: bounded(name, NAME_CHARS),
                unique_id: unique_id.clone(),
            },
        }
    }
}

impl ThreadSelection {
    fn encode(&self) -> pb::sampler_metadata::ThreadDumper {
        use pb::sampler_metadata::thread_dumper::Type;
        let (kind, ids, patterns) = match self {
            ThreadSelection::All => (Type::All, Vec::new(), Vec::new()),
            ThreadSelection::Threads(tids) => (
                Type::Specific,
                tids.iter().map(|tid| i64::from(tid.get())).collect(),
                Vec::new(),
            ),
            ThreadSelection::Patterns(patterns) => (Type::Regex, Vec::new(), patterns.clone()),
        };
        pb::sampler_metadata::ThreadDumper {
            r#type: kind.into(),
            ids,
            patterns,
        }
    }
}

fn grouper(grouping: Grouping) -> pb::sampler_metadata::data_aggregator::ThreadGrouper {
    use pb::sampler_metadata::data_aggregator::ThreadGrouper;
    match grouping {
        Grouping::ByPool => ThreadGrouper::ByPool,
        Grouping::Separate => ThreadGrouper::ByName,
        Grouping::AllInOne => ThreadGrouper::AsOne,
    }
}

#[cfg(test)]
#[path = "metadata_tests.rs"]
mod tests;
