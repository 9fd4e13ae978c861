//! A session as its journal tells it, booked as if it had just been sampled.

use std::collections::HashMap;
use std::sync::Arc;

use super::aggregator::Aggregated;
use super::books::{Books, OnlyTicks};
use super::control::{Requester, StartRequest};
use super::environment::{Environment, PluginInfo};
use super::minutes::Minutes;
use super::recording::{Figures, Recorded, Recovered};
use super::report::Windows;
use super::tick_watch::TickWatch;
use crate::export::ServerReport;
use crate::journal::{Event, Frame, Owner, Sampled, SessionHead};
use crate::limits;
use crate::model::{
    Module, MonotonicNanos, NamePattern, PythonDiagnostics, PythonPart, PythonState, RecoveryFigures, Retention,
    Sample, SamplerDiagnostics, StackEnd, Stalls, ThreadChoice, ThreadKey, ThreadNames, Tid, clean_text,
};
use crate::profile::{FrameKey, MergeStats, WindowClock};
use crate::sys::{Machine, maps};

/// A day is as much as the viewer shows.
const OF_A_SESSION: Retention = Retention::Minutes(limits::RECOVERED_MINUTES);

/// The journal of the background profiler reaches further back than what it kept itself.
const OF_THE_BACKGROUND: Retention = Retention::Minutes(limits::ENDLESS_MINUTES);

/// Why a recovered profile has no Python functions.
const NO_PYTHON: &str = "it was recovered after the server had ended: only native frames are kept until then";

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    begun: Option<Begun>,
    is_ended: bool,
    samples: u64,
    dropped: u64,
}

/// A session, as if it had just ended.
pub(super) struct Remade {
    pub(super) recorded: Recorded,
    pub(super) windows: Windows,
    pub(super) environment: Environment,
    pub(super) server: ServerReport,
    /// Nobody had started it.
    pub(super) in_background: bool,
}

/// What there is once the session's head is read.
#[derive(Debug)]
struct Begun {
    head: SessionHead,
    clock: WindowClock,
    books: Books,
    /// Where only slow ticks are wanted.
    slow: Option<Slow>,
    names: HashMap<ThreadKey, String>,
    modules: Vec<Arc<Module>>,
    ticks: Minutes,
    stalls: Stalls,
    last: MonotonicNanos,
    ends: [u64; StackEnd::ALL.len()],
    repeated: u64,
    threads: u32,
    path: Vec<FrameKey>,
}

/// What tells slow ticks: what a session knows of a server whose own figure cannot be looked at in between.
#[derive(Debug)]
struct Slow {
    over_nanos: u64,
    watch: Arc<TickWatch>,
    /// Up to where each living thread's time is accounted for.
    until: HashMap<ThreadKey, MonotonicNanos>,
}

impl Replayed {
    /// Takes what the reader shows.
    pub(super) fn take(&mut self, event: Event<'_>) {
        if let Event::Head(head) = &event {
            self.begun.get_or_insert_with(|| Begun::new(head));
        }
        self.is_ended |= event == Event::End;
        let Some(begun) = &mut self.begun else { return };
        match event {
            Event::Head(_) | Event::End => {}
            Event::Module(module) => begun.modules.push(Arc::new(here(module))),
            Event::Thread(key, name) => {
                begun.threads += u32::from(begun.names.insert(key, name).is_none());
            }
            Event::ThreadEnded(key, name) => {
                begun.names.remove(&key);
                if let Some(slow) = &mut begun.slow {
                    slow.until.remove(&key);
                }
                begun.books.settle(vec![(key, name)]);
            }
            Event::Sample(sample) => {
                self.samples += u64::from(sample.count);
                begun.sample(&sample);
            }
            Event::Tick(at, mspt) => begun.tick(at, mspt),
            // A segment repeats the one that goes on.
            Event::Stall(stall) => begun.stalls.take(stall),
            Event::Dropped(count) => self.dropped = self.dropped.saturating_add(count),
        }
    }

    /// Whether its profile is safe, or was not wanted.
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Samples so far.
    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// The session as a recording leaves it. `None` without a head. `figures` says how it was read.
    pub(super) fn finish(self, figures: RecoveryFigures) -> Option<Remade> {
        let begun = self.begun?;
        let figures = RecoveryFigures {
            samples_dropped: self.dropped,
            ..figures
        };
        Some(begun.finish(self.samples, figures))
    }
}

impl Begun {
    fn new(head: &SessionHead) -> Self {
        let clock = WindowClock::new(head.started_at, head.started);
        let retention = match head.in_background {
            false => OF_A_SESSION,
            true => OF_THE_BACKGROUND,
        };
        let slow = head.only_ticks_over_millis.map(|millis| Slow {
            over_nanos: millis.saturating_mul(1_000_000),
            watch: Arc::default(),
            until: HashMap::new(),
        });
        let only = slow.as_ref().map(|slow| {
            slow.watch.begin();
            OnlyTicks {
                over_nanos: slow.over_nanos,
                since: head.started_at,
                watch: Arc::clone(&slow.watch),
            }
        });
        Begun {
            head: head.clone(),
            clock,
            books: Books::new(clock, retention, only),
            slow,
            names: HashMap::new(),
            modules: Vec::new(),
            ticks: Minutes::new(clock, retention),
            stalls: Stalls::default(),
            last: head.started_at,
            ends: [0; StackEnd::ALL.len()],
            repeated: 0,
            threads: 0,
            path: Vec::new(),
        }
    }

    fn sample(&mut self, sample: &Sampled<'_>) {
        self.path.clear();
        self.path.extend(sample.path.iter().map(|frame| match frame {
            Frame::Ended(end) => FrameKey::Ended(*end),
            Frame::Omitted(count) => FrameKey::omitted(*count),
            Frame::Native { module, rva } => FrameKey::Native {
                module: *module,
                rva: *rva,
            },
        }));
        let end = match sample.path.first() {
            Some(Frame::Ended(end)) => *end,
            _ => StackEnd::Root,
        };
        if let Some(count) = self.ends.get_mut(end as usize) {
            *count += u64::from(sample.count);
        }
        self.repeated += if sample.repeated { u64::from(sample.count) } else { 0 };
        self.last = self.last.max(sample.taken_at);
        let taken_at = match &mut self.slow {
            None => sample.taken_at,
            Some(slow) => slow.end_of(sample),
        };
        self.books.sample(
            &Sample {
                thread: sample.thread,
                taken_at,
                weight_nanos: sample.weight_nanos,
                held_nanos: sample.held_nanos,
                native: &[],
                omitted: 0,
                end,
                python: PythonPart::None,
                repeated: sample.repeated,
            },
            &self.path,
        );
    }

    fn tick(&mut self, at: MonotonicNanos, mspt: f32) {
        self.last = self.last.max(at);
        self.ticks.add(at, mspt);
        if let Some(slow) = &self.slow {
            slow.watch.task(at, mspt);
            self.books.settle(Vec::new());
        }
    }

    fn finish(self, samples: u64, figures: RecoveryFigures) -> Remade {
        let head = self.head;
        let sampler = SamplerDiagnostics {
            samples,
            repeated: self.repeated,
            ends: self.ends,
            threads: self.names.len() as u32,
            threads_ever: self.threads,
            ..SamplerDiagnostics::default()
        };
        let names = self.names;
        let mut books = self.books;
        if let Some(slow) = &self.slow {
            // The tick that ran when the server ended may be the very one that it died in.
            slow.watch.cut(self.last, slow.over_nanos);
            books.settle(Vec::new());
        }
        let (threads, first_window, slow_ticks) = books.close(|key| names.get(&key).cloned().unwrap_or_default());
        let recovered = Recovered {
            figures,
            same_executable: is_our_program(&self.modules, &head),
        };
        let server = server(&head, self.last);
        let environment = Environment {
            server_name: head.server_name.clone(),
            server_version: head.server_version.clone(),
            minecraft_version: head.minecraft_version.clone(),
            plugins: head.plugins.iter().map(plugin).collect(),
        };
        let recorded = Recorded {
            request: request(&head),
            clock: self.clock,
            started_at: head.started_at,
            ended_at: self.last,
            server_thread: head.server_thread.unwrap_or(Tid::new(0)),
            figures: Figures {
                sampler,
                python: PythonDiagnostics {
                    state: PythonState::Unsupported(NO_PYTHON.to_owned()),
                    ..PythonDiagnostics::default()
                },
                merge: MergeStats::default(),
                ticks: slow_ticks,
                ..Figures::default()
            },
            aggregated: Some(Aggregated {
                threads,
                modules: self.modules,
                first_window,
                ticks: slow_ticks,
            }),
            codes: Vec::new(),
            stalls: self.stalls,
            recovered: Some(recovered),
        };
        Remade {
            recorded,
            windows: Windows {
                ticks: self.ticks.finish(),
                counts: Vec::new(),
            },
            environment,
            server,
            in_background: head.in_background,
        }
    }
}

impl Slow {
    /// When the last of what an entry stands for was looked at. Looks that found a thread where it had been are one entry, which has the moment of the first; what it stands for
    /// begins where the thread's time was accounted for before.
    fn end_of(&mut self, sample: &Sampled<'_>) -> MonotonicNanos {
        let until = self.until.entry(sample.thread).or_insert(sample.taken_at);
        let end = match sample.repeated {
            true => MonotonicNanos(until.0.saturating_add(sample.weight_nanos)).max(sample.taken_at),
            false => sample.taken_at,
        };
        *until = end;
        end
    }
}

/// What is known of the server: it is gone.
fn server(head: &SessionHead, last: MonotonicNanos) -> ServerReport {
    let session_millis = last.since(head.started_at) / 1_000_000;
    ServerReport {
        endstone_version: head.server_version.clone(),
        minecraft_version: head.minecraft_version.clone(),
        brand: head.server_name.clone(),
        machine: Machine {
            uptime_millis: head.server_uptime_millis.saturating_add(session_millis),
            ..Machine::read()
        },
        ..ServerReport::default()
    }
}

/// The module as this process may read it. The kernel's own library has no file and lies elsewhere in every process: what the journal says of its place is not
/// followed.
fn here(module: Module) -> Module {
    if module.path.as_os_str() != "[vdso]" {
        return module;
    }
    let mappings = maps::mappings().unwrap_or_default();
    let own = mappings
        .into_iter()
        .find(|mapping| mapping.path.as_os_str() == "[vdso]");
    Module {
        avma: own.map_or(0..0, |mapping| mapping.range),
        ..module
    }
}

/// Whether the session's program is the one that runs here: its file, and not written to since.
fn is_our_program(modules: &[Arc<Module>], head: &SessionHead) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(path), Ok(file)) = (
        std::fs::read_link("/proc/self/exe"),
        std::fs::metadata("/proc/self/exe"),
    ) else {
        return false;
    };
    file.ctime() < head.started.0 / 1_000
        && modules
            .iter()
            .any(|module| module.path == path && module.inode == file.ino())
}

fn request(head: &SessionHead) -> StartRequest {
    let patterns = || {
        head.thread_names
            .iter()
            .map(|text| NamePattern::new(text).ok())
            .collect()
    };
    let threads = match (head.all_threads, head.thread_names.is_empty()) {
        (true, _) => ThreadChoice::All,
        (_, true) => ThreadChoice::Server,
        _ => ThreadChoice::Named(
            match Some(head.names_are_patterns).filter(|is| *is).and_then(|_| patterns()) {
                Some(patterns) => ThreadNames::Patterns(patterns),
                None => ThreadNames::Exact(head.thread_names.clone()),
            },
        ),
    };
    let ran = match head.in_background {
        false => "the profiler",
        true => "the background profiler",
    };
    let comment = format!("Recovered: the server ended while {ran} ran. {}", head.comment);
    let requested_by = match &head.owner {
        Owner::Console => Requester::Console,
        Owner::Player { name, unique_id } => Requester::Player {
            name: name.clone(),
            unique_id: *unique_id,
        },
    };
    // As the format has it.
    let interval_micros = head
        .interval_micros
        .clamp(limits::MIN_INTERVAL_MICROS, limits::MAX_INTERVAL_MICROS);
    StartRequest {
        threads,
        ignore_sleeping: head.ignore_sleeping,
        view: head.view,
        save_to_file: true,
        comment: Some(clean_text(&comment, limits::COMMENT_CHARS)),
        only_ticks_over_millis: head.only_ticks_over_millis,
        ..StartRequest::new(interval_micros, requested_by)
    }
}

fn plugin(record: &crate::journal::PluginRecord) -> PluginInfo {
    PluginInfo {
        name: record.name.clone(),
        version: record.version.clone(),
        authors: record.authors.clone(),
        description: record.description.clone(),
        native_stem: record.native_stem.clone(),
    }
}
