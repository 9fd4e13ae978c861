//! Random command lines, made by cutting, joining, doubling and spoiling good ones. None may panic, and every answer is fit to be shown.
//!
//! `SPARK_FUZZ_INPUTS=10000000 cargo test --release --test command_fuzz` runs as many as are asked for; `SPARK_FUZZ_SEED` repeats a run. Not coverage-guided: that
//! needs a nightly compiler. The parser is small, and the dictionary holds all its words.

mod fuzz;

use endstone_spark::command::{Audience, Granted, run};
use endstone_spark::model::{PastProfile, SlowTicks, Statistics, WallMillis};
use endstone_spark::session::{
    Control, Ended, MonitorChange, Refusal, Requester, SessionInfo, StartRequest, StopRequest,
};
use fuzz::Random;

/// Accepts everything, and looks at what comes of it.
struct Session;

fn presentable(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || c == '§')
}

impl Control for Session {
    fn start(&self, request: StartRequest) -> Result<(), Refusal> {
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

fn one_of<'a>(random: &mut Random, choices: &[&'a str]) -> &'a str {
    choices[random.below(choices.len())]
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

/// What most lines begin with.
const BEGINNINGS: &[&str] = &[
    "profiler start",
    "profiler stop",
    "profiler",
    "activity",
    "sampler upload",
    "health",
    "ping",
    "tickmonitor",
];

fn line(random: &mut Random) -> Vec<u8> {
    let mut line = Vec::new();
    if random.below(4) > 0 {
        line.extend(one_of(random, BEGINNINGS).bytes());
    }
    for _ in 0..random.below(9) {
        if random.below(8) > 0 {
            line.push(b' ');
        }
        line.extend(one_of(random, WORDS).bytes());
    }
    // Spoil it.
    for _ in 0..random.below(4) {
        if line.is_empty() {
            break;
        }
        let at = random.below(line.len());
        match random.below(5) {
            0 => line[at] = random.next() as u8,
            1 => line.insert(at, random.next() as u8),
            2 => drop(line.remove(at)),
            3 => line.truncate(at),
            _ => {
                let piece = line[at..].to_vec();
                line.extend(piece);
            }
        }
    }
    if random.below(200) == 0 {
        line = line.repeat(random.below(100) + 1);
    }
    line
}

/// As servers hand it over: what is not UTF-8 has become replacement characters.
fn check(bytes: &[u8], random: &mut Random) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let arguments: Vec<&str> = match random.below(3) {
        0 => vec![&text],
        1 => text.splitn(3, ' ').collect(),
        _ => text.split(' ').collect(),
    };
    let lines = run(&arguments, &Requester::Console, &Granted::all(), &Session);
    assert!((1..=14).contains(&lines.len()), "{text:?}");
    for line in lines {
        let shown = line.render(Audience::Console);
        assert!(presentable(&shown), "{text:?} gives {shown:?}");
        assert!(shown.chars().count() < 1_000, "{text:?} gives {shown:?}");
    }
}

#[test]
fn random_lines_are_answered_presentably() {
    let (inputs, mut random) = fuzz::inputs(200_000);
    for _ in 0..inputs {
        let bytes = line(&mut random);
        check(&bytes, &mut random);
    }
}
