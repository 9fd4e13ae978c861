//! Command lines. Every answer is fit to be shown.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use endstone_spark::command::{Audience, Granted, run};
use endstone_spark::model::{PastProfile, SlowTicks, Statistics, WallMillis};
use endstone_spark::session::{
    Control, Ended, MonitorChange, Refusal, Requester, SessionInfo, StartRequest, StopRequest,
};

use super::mutate::{Format, Numbers};
use super::random::Random;
use super::run::fuzz;
use super::target::{Target, corpus, presentable};

/// Accepts everything, and looks at what comes of it.
#[derive(Default)]
struct Session {
    was_asked: Cell<bool>,
}

impl Control for Session {
    fn start(&self, request: StartRequest) -> Result<(), Refusal> {
        self.was_asked.set(true);
        assert!((100..=1_000_000).contains(&request.interval_micros));
        assert!(
            request
                .timeout_seconds
                .is_none_or(|limit| (11..=86_400).contains(&limit))
        );
        assert!(
            request
                .comment
                .is_none_or(|text| presentable(&text) && (1..=500).contains(&text.chars().count()))
        );
        Ok(())
    }
    fn stop(&self, request: StopRequest) -> Result<Ended, Refusal> {
        self.was_asked.set(true);
        assert!(
            request
                .comment
                .is_none_or(|text| presentable(&text) && (1..=500).contains(&text.chars().count()))
        );
        Ok(Ended::Session)
    }
    fn cancel(&self, _by: &Requester) -> Result<Ended, Refusal> {
        Ok(Ended::Session)
    }
    fn info(&self) -> SessionInfo {
        SessionInfo::default()
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn toggle_monitor(&self, slow: SlowTicks, _by: &Requester) -> MonitorChange {
        let (SlowTicks::PercentOver(limit) | SlowTicks::Millis(limit)) = slow;
        assert!(limit > 0.0 && limit <= 1e6);
        MonitorChange::Started(slow)
    }
    fn report_health(&self, _by: &Requester) -> Result<(), Refusal> {
        Ok(())
    }

    fn activity(&self) -> (WallMillis, Vec<PastProfile>) {
        (WallMillis(0), Vec::new())
    }
}

const WORDS: &[&str] = &[
    "profiler",
    "sampler",
    "help",
    "activity",
    "tps",
    "health",
    "ht",
    "ping",
    "tickmonitor",
    "--memory",
    "--network",
    "--player",
    "--threshold",
    "--threshold-tick",
    "gc",
    "heapdump",
    "heapsummary",
    "gcmonitor",
    "start",
    "stop",
    "upload",
    "info",
    "cancel",
    "open",
    "--start",
    "--stop",
    "--upload",
    "--info",
    "--cancel",
    "--open",
    "--interval",
    "--timeout",
    "--thread",
    "--regex",
    "--ignore-sleeping",
    "--not-combined",
    "--combine-all",
    "--show-interpreter",
    "--comment",
    "--save-to-file",
    "--only-ticks-over",
    "--page",
    "--page=2",
    "--interval=4",
    "--comment=\"a b\"",
    "--thread=*",
    "*",
    "4",
    "0.1",
    "1000.0001",
    "11",
    "86400",
    "99999999999999999999",
    "-1",
    "NaN",
    "inf",
    "1e9",
    "0x10",
    "٤",
    "worker-.*",
    "(",
    "[a-z]{3,}",
    "a{9999}{9999}",
    "(?i)x|y",
    "\\p{L}",
    "\"",
    "\"\"",
    "\\\"",
    "\\",
    "\"two words\"",
    "--",
    "--=",
    "---",
    "=",
    "§c",
    "§",
    "\u{7}",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "\u{fffd}",
    "🦀",
    "e\u{301}",
    "\u{2028}",
    "\r\n",
    "\0",
    "\t",
    "ſtop",
    "İnfo",
    "ﬀ",
];

struct Commands {
    seeds: Vec<Vec<u8>>,
    words: Vec<&'static [u8]>,
    /// Lines that began or ended something.
    done: AtomicU64,
}

impl Commands {
    fn format(&self) -> Format<'_> {
        Format {
            numbers: Numbers::Text,
            extremes: &[4, 10, 11, 1_000, 1_001, 60_000, 86_400, 86_401, 1_000_000],
            words: &self.words,
            seeds: &self.seeds,
            longest: 64 << 10,
        }
    }
}

impl Target for Commands {
    const TEST: &'static str = "commands::random_lines_are_answered_presentably";
    const INPUTS: u64 = 200_000;
    const MEMORY_BYTES: u64 = 64 << 20;

    fn seeds(&self) -> &[Vec<u8>] {
        &self.seeds
    }

    fn make(&self, random: &mut Random) -> Vec<u8> {
        let mut line = match random.below(4) {
            0 => Vec::new(),
            _ => random.one_of(&self.seeds).clone(),
        };
        // A good line with few words more is often one again.
        let more = if random.once_in(2) { 3 } else { 9 };
        for _ in 0..random.below(more) {
            if !random.once_in(8) {
                line.push(b' ');
            }
            line.extend(random.one_of(WORDS).bytes());
        }
        for _ in 0..random.below(more / 2) {
            self.format().spoil(&mut line, random);
        }
        if random.once_in(200) {
            line = line.repeat(random.below(100) + 1);
        }
        line
    }

    /// As servers hand it over: what is not UTF-8 has become replacement characters.
    fn check(&self, input: &[u8]) {
        let text = String::from_utf8_lossy(input).into_owned();
        let arguments: Vec<&str> = match Random::of_bytes(input).below(3) {
            0 => vec![&text],
            1 => text.splitn(3, ' ').collect(),
            _ => text.split(' ').collect(),
        };
        let session = Session::default();
        let lines = run(&arguments, &Requester::Console, &Granted::all(), &session);
        assert!((1..=14).contains(&lines.len()), "{text:?}");
        for line in lines {
            let shown = line.render(Audience::Console);
            assert!(presentable(&shown), "{text:?} gives {shown:?}");
            assert!(shown.chars().count() < 1_000, "{text:?} gives {shown:?}");
        }
        // Relaxed, here and below: a count.
        self.done
            .fetch_add(u64::from(session.was_asked.get()), Ordering::Relaxed);
    }

    fn finish(&self, inputs: u64) -> String {
        let done = self.done.load(Ordering::Relaxed);
        assert!(done > inputs / 50, "{done} of {inputs} lines were commands");
        format!("{done} lines were commands that the session took")
    }
}

#[test]
fn random_lines_are_answered_presentably() {
    fuzz(&Commands {
        seeds: corpus("commands"),
        words: WORDS.iter().map(|word| word.as_bytes()).collect(),
        done: AtomicU64::new(0),
    });
}
