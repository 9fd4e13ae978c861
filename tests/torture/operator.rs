//! Types commands at random, and looks at every profile that comes of them.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use harness::{Mark, Profile, Server};

use super::bytebin::Bytebin;
use super::random::Random;
use super::report::Report;
use super::truth::Truth;

/// Nothing that still works takes this long, on any machine: an upload may take two minutes.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// What may be done while a session runs or a profile is being made. Each gets an answer.
const ASIDE: [&str; 7] = [
    "spark profiler info",
    "spark profiler start",
    "spark tps",
    "spark health --memory --network",
    "spark activity",
    "spark ping",
    "spark version",
];

/// Which threads are sampled.
const THREADS: [&str; 4] = ["--thread *", "--thread *", "", "--thread tort-.* --regex"];

/// How.
const MORE: [&str; 6] = [
    "",
    "",
    "--ignore-sleeping",
    "--not-combined",
    "--only-ticks-over 1",
    "--show-interpreter --comment \"with everything\"",
];

const INTERVALS: [&str; 4] = ["0.1", "0.1", "0.3", "1"];

const ENDS: [&str; 7] = [
    "spark profiler stop --save-to-file",
    "spark profiler stop --save-to-file",
    "spark profiler stop --save-to-file",
    "spark profiler stop",
    "spark profiler upload --comment \"again\"",
    "spark profiler cancel",
    "!reload-plugins",
];

/// What breaks off an upload that hangs.
const BREAKS: [&str; 2] = ["spark profiler stop --save-to-file", "spark profiler cancel"];

/// Said of a session, or of what is made of one.
fn is_state(line: &str) -> bool {
    let states = ["The profiler is ", "Profiling for ", "The last profile is not done yet"];
    states.iter().any(|state| line.contains(state))
}

/// Someone at the console who does not know what they want.
pub struct Operator<'a> {
    random: Random,
    truth: &'a Truth,
    bytebin: &'a Bytebin,
}

impl<'a> Operator<'a> {
    pub fn new(seed: u64, truth: &'a Truth, bytebin: &'a Bytebin) -> Self {
        Operator {
            random: Random::of(seed, 0),
            truth,
            bytebin,
        }
    }

    fn command(&mut self, server: &mut Server, line: &str, report: &mut Report) -> Mark {
        report.log(line);
        server.command(line).unwrap()
    }

    /// From a start to an end of one kind or another.
    pub fn session(&mut self, server: &mut Server, report: &mut Report) {
        let [threads, more] = [self.random.one_of(&THREADS), self.random.one_of(&MORE)];
        let interval = self.random.one_of(&INTERVALS);
        let line = format!("spark profiler start --interval {interval} {threads} {more}");
        let mark = self.command(server, line.trim_end(), report);
        server
            .wait_for_since(mark, "The profiler is running", PATIENCE)
            .unwrap();
        report.sessions += 1;
        for _ in 0..=self.random.below(3) {
            server
                .run_for(Duration::from_millis(100 + self.random.next() % 1_500))
                .unwrap();
            self.aside(server, report);
        }
        let end = *self.random.one_of(&ENDS);
        let mark = self.command(server, end, report);
        if end == "!reload-plugins" {
            server.wait_for_since(mark, "!reload-plugins done", PATIENCE).unwrap();
            report.reloads += 1;
        }
        if self.random.once_in(3) {
            self.aside(server, report);
        }
        let breaks = *self.random.one_of(&BREAKS);
        // Some uploads are waited for to the end, however it comes.
        let patience = Duration::from_secs(self.random.next() % 15);
        let begun = Instant::now();
        while !self.is_settled(server, report) {
            if begun.elapsed() > patience {
                self.command(server, breaks, report);
            }
            server.run_for(Duration::from_millis(100)).unwrap();
            assert!(begun.elapsed() < PATIENCE, "the last profile is never done");
        }
        self.look(server, report);
    }

    /// Waits until nothing is under way, and looks at what has come.
    pub fn settle(&mut self, server: &mut Server, report: &mut Report) {
        while !self.is_settled(server, report) {
            server.run_for(Duration::from_millis(100)).unwrap();
        }
        self.look(server, report);
    }

    fn is_settled(&mut self, server: &mut Server, report: &mut Report) -> bool {
        let mark = self.command(server, "spark profiler info", report);
        let state = server.wait_for_since(mark, is_state, PATIENCE).unwrap();
        state.contains("The profiler is not running")
    }

    fn aside(&mut self, server: &mut Server, report: &mut Report) {
        let line = *self.random.one_of(&ASIDE);
        let mark = self.command(server, line, report);
        server.wait_for_since(mark, "[⚡]", PATIENCE).unwrap();
    }

    /// Judges all new profiles, and removes them.
    fn look(&mut self, server: &mut Server, report: &mut Report) {
        for file in server.profile_files().unwrap() {
            let profile = Profile::read(&file).unwrap();
            report.take(self.truth, &profile);
            fs::remove_file(file).unwrap();
        }
        for request in self.bytebin.take_requests() {
            let mut bytes = Vec::new();
            GzDecoder::new(&request.body[..]).read_to_end(&mut bytes).unwrap();
            let profile = Profile::decode(&bytes).unwrap();
            report.uploads += 1;
            report.take(self.truth, &profile);
        }
    }
}
