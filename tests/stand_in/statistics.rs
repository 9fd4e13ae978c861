//! `/spark tps`, `health`, `ping` and `tickmonitor`, on ticks of known lengths and with known players.

use harness::Server;

use super::world_plan::WorldPlan;
use super::{ANSWER, alone, beside, lab};

/// A few microseconds lie between the stand-in's own measurement and Endstone's, and on a full machine the thread may lose its processor there.
const CLOSE_MILLIS: f64 = 0.5;

/// Rounding to two digits, and the same microseconds at the edges of five seconds.
const CLOSE_TPS: f64 = 0.06;

/// What was printed, and the ticks as the stand-in measured them.
struct Measured {
    printed: Vec<String>,
    /// How many milliseconds ago the level was ticked, oldest first.
    beats: Vec<f64>,
    /// How many milliseconds each tick took.
    lengths: Vec<f64>,
}

fn numbers(line: &str, separator: &str) -> Vec<f64> {
    let (_, figures) = line.rsplit_once(": ").unwrap();
    figures
        .split(separator)
        .take_while(|figure| figure.trim() != "not yet")
        .map(|figure| {
            figure
                .trim()
                .parse()
                .unwrap_or_else(|_| panic!("{figure:?} in {line:?}"))
        })
        .collect()
}

/// The words behind the name of a probe.
fn probed(lines: &[String], probe: &str) -> Vec<Vec<f64>> {
    lines
        .iter()
        .filter_map(|line| Some(line.split_once(probe)?.1))
        .map(|figures| {
            figures
                .split_whitespace()
                .map(|figure| figure.parse().unwrap())
                .collect()
        })
        .collect()
}

/// Asks for the figures, and the stand-in for what it knows, in one moment between two ticks.
fn measure(server: &mut Server, lengths: &mut Vec<f64>) -> Measured {
    loop {
        let mark = server.command("!beats\nspark tps\n!lengths\n!beats\n!ticks 1").unwrap();
        server.wait_for_since(mark, "!ticks done", ANSWER).unwrap();
        let printed = server.output_since(mark);
        lengths.extend(probed(&printed, "!lengths").remove(0));
        let beats = probed(&printed, "!beats");
        // The lines may have been typed into two moments.
        if beats[0].len() == beats[1].len() && beats[0].len() == lengths.len() {
            return Measured {
                printed,
                beats: beats[0].clone(),
                lengths: lengths.clone(),
            };
        }
    }
}

impl Measured {
    fn line(&self, part: &str) -> &str {
        let found = self.printed.iter().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("no {part:?} in {:#?}", self.printed))
    }

    /// Ticks in the last `seconds` by what they are: each gap counts by the part of it that lies in that time.
    fn tps(&self, seconds: f64, first: usize) -> f64 {
        let beats = &self.beats[first..];
        let mut gaps: Vec<(f64, f64)> = beats.windows(2).map(|pair| (pair[0], pair[1])).collect();
        let mut lengths: Vec<f64> = gaps.iter().map(|(begin, end)| begin - end).collect();
        let (Some(last_gap), Some(open)) = (lengths.last().copied(), beats.last().copied()) else {
            panic!("no ticks");
        };
        gaps.push((open, 0.0));
        lengths.push(last_gap.max(open));
        let (mut ticks, mut known) = (0.0, 0.0);
        for ((begin, end), length) in gaps.into_iter().zip(lengths) {
            let inside = (begin.min(seconds * 1e3) - end).max(0.0);
            ticks += inside / length;
            known += inside;
        }
        ticks * 1e3 / known
    }

    /// Mean, least, median, 95 % and greatest length of the ticks that were followed by another one less than so many milliseconds ago.
    fn spread(&self, millis: f64, first: usize) -> [f64; 5] {
        let mut lengths: Vec<f64> = self.lengths[first..]
            .iter()
            .zip(&self.beats[first + 1..])
            .filter(|(_, next)| **next < millis)
            .map(|(length, _)| *length)
            .collect();
        lengths.sort_by(f64::total_cmp);
        let number = lengths.len();
        let median = (lengths[(number - 1) / 2] + lengths[number / 2]) / 2.0;
        let rank = (0.95 * number as f64).ceil() as usize;
        let mean = lengths.iter().sum::<f64>() / number as f64;
        [mean, lengths[0], median, lengths[rank - 1], lengths[number - 1]]
    }

    fn check(&self) -> Result<(), String> {
        // Whether our first task ran in the server's first tick or its second is Endstone's business.
        let tps = numbers(self.line("TPS over"), ",");
        for (printed, seconds) in tps.iter().zip([5.0, 10.0, 60.0, 300.0, 900.0]) {
            let expected = [0, 1].map(|first| self.tps(seconds, first));
            if !expected.iter().any(|expected| (printed - expected).abs() < CLOSE_TPS) {
                return Err(format!("{printed} over {seconds} s, not {expected:?}"));
            }
        }
        for (row, seconds) in [("  10 s: ", 10.0), ("  1 min: ", 60.0), ("  5 min: ", 300.0)] {
            let printed = numbers(self.line(row), "/");
            // A tick at the very edge is in or out.
            let expected: Vec<[f64; 5]> = [(0, -2.0), (0, 0.0), (0, 2.0), (1, -2.0), (1, 0.0), (1, 2.0)]
                .into_iter()
                .map(|(first, edge)| self.spread(seconds * 1e3 + edge, first))
                .collect();
            let close = |expected: &[f64; 5]| {
                printed
                    .iter()
                    .zip(expected)
                    .all(|(printed, expected)| (printed - expected).abs() < CLOSE_MILLIS)
            };
            if !expected.iter().any(close) {
                return Err(format!("{row}{printed:?}, not one of {expected:?}"));
            }
        }
        Ok(())
    }
}

/// A server that does nothing of its own in its ticks.
fn idle_server() -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    let builder = lab.server(&python).arg("--load").arg("none").arg("--no-python");
    builder.start_ready().unwrap()
}

/// One server's figures at its beginning, and after a known pattern.
fn figures_of_ticks() -> Result<(), String> {
    let mut server = idle_server();
    let mut lengths = Vec::new();
    // Enough that what lies between the stand-in's clock and ours, a millisecond on a full machine, is little beside it.
    server.ask("!ticks 60", "!ticks done").unwrap();
    measure(&mut server, &mut lengths).check()?;
    // More than ten seconds, so that one window is cut and the others are not.
    let mark = server.command("!pattern 40 5,30,70,200").unwrap();
    server.wait_for_since(mark, "!pattern done", ANSWER).unwrap();
    let measured = measure(&mut server, &mut lengths);
    measured.check()?;
    assert!(
        measured
            .line("so far")
            .contains("the longest time shown covers only that")
    );
    // A time that would only repeat a shorter one's figure is not shown.
    assert_eq!(numbers(measured.line("TPS over"), ",").len(), 3);
    assert!(measured.line("  5 min: ").ends_with("not yet"));
    // The longest is one of those that were asked for.
    let longest = numbers(measured.line("  1 min: "), "/")[4];
    assert!((200.0..).contains(&longest), "{longest}");
    server.stop_cleanly().unwrap();
    Ok(())
}

#[test]
fn every_figure_of_ticks_is_what_the_server_measured() {
    let _alone = alone();
    // Where the machine is full, the thread may lose its processor between the stand-in's reading of the clock and Endstone's. The figures are the same then, but not
    // of the same thing; a wrong figure is wrong each time.
    let mut wrong = Vec::new();
    for _ in 0..4 {
        match figures_of_ticks() {
            Ok(()) => return,
            Err(what) => wrong.push(what),
        }
    }
    panic!("{wrong:#?}");
}

#[test]
fn health_says_what_is_known_of_the_machine_and_its_players() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab
        .server(&python)
        .arg("--no-python")
        .arg("--world")
        .arg("chunks=4,entities=4,players=3")
        .start_ready()
        .unwrap();
    // Shares of processors are known after the second reading.
    loop {
        let mark = server.command("spark tps\n!ticks 4").unwrap();
        server.wait_for_since(mark, "!ticks done", ANSWER).unwrap();
        let said = server.output_since(mark);
        if said
            .iter()
            .any(|line| line.contains("CPU of the machine") && line.contains('%'))
        {
            break;
        }
    }
    let mark = server.command("spark health --memory --network\n!ticks 1").unwrap();
    server.wait_for_since(mark, "!ticks done", ANSWER).unwrap();
    let said = server.output_since(mark);
    for part in [
        "TPS over 5 s, 10 s, 1 min, 5 min, 15 min: ",
        "CPU of the server (of ",
        "Up for ",
        "3 players online",
        "Memory of the server: ",
        "address space: ",
        "Memory of the machine: ",
        "Disk: ",
        "System: ",
        "Network",
    ] {
        assert!(said.iter().any(|line| line.contains(part)), "no {part:?} in {said:#?}");
    }
    let pings = [0, 1, 2].map(|player| WorldPlan::ping(player) as f64);
    let now = server.ask("spark ping", "now: ").unwrap();
    let mean = pings.iter().sum::<f64>() / 3.0;
    assert_eq!(numbers(&now, "/"), [mean, pings[0], pings[1], pings[2], pings[2]]);
    let answer = format!("Ping of Player1: {} ms", pings[1]);
    server.ask("spark ping --player player1", answer.as_str()).unwrap();
    server
        .ask("spark ping --player nobody", "No player called nobody")
        .unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn the_tick_monitor_learns_then_tells_of_slow_ticks_until_it_is_stopped() {
    let _alone = alone();
    let mut server = idle_server();
    let begun = server.mark();
    server
        .ask("spark tickmonitor --threshold-tick 150", "150 ms or more")
        .unwrap();
    server.command("!pattern 60 5,8\n!ticks 4").unwrap();
    server
        .wait_for_since(begun, "The tick monitor is ready", ANSWER)
        .unwrap();
    let slow = server.mark();
    server.command("!pattern 1 5,8,200,5,5").unwrap();
    let millis = |told: &str| {
        let words = told.split_once(" took ").filter(|_| told.contains("Tick "))?.1;
        words.split(' ').next()?.parse::<f64>().ok()
    };
    let is_ours = move |told: &str| millis(told).is_some_and(|millis| millis >= 200.0);
    server.wait_for_since(slow, is_ours, ANSWER).unwrap();
    server.ask("spark tickmonitor", "The tick monitor is off").unwrap();
    let off = server.mark();
    let mark = server.command("!pattern 1 200,5,5").unwrap();
    server.wait_for_since(mark, "!pattern done", ANSWER).unwrap();
    server.ask("!ticks 2", "!ticks done").unwrap();
    let said = server.output_since(off);
    assert!(!said.iter().any(|line| line.contains(" took ")), "{said:#?}");
    server.stop_cleanly().unwrap();
}
