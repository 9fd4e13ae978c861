//! Command lines and what they answer, word for word. Each is given to the parser in all shapes that a server may split it into.

mod command_lines;

use std::cell::RefCell;

use command_lines::*;
use endstone_spark::command::{Audience, Granted, run};
use endstone_spark::model::{
    Grouping, PastKind, PastProfile, ProfilePlace, PythonDiagnostics, PythonState, SampleLoss, SamplerDiagnostics,
    SlowTicks, Statistics, ThreadChoice, ThreadNames, TickFigures, WallMillis,
};
use endstone_spark::session::{
    Control, Destination, Ended, ExportStep, MonitorChange, Refusal, Requester, RunningInfo, SessionInfo, StartRequest,
    StopRequest,
};

/// What the session answers, and what it was asked for.
#[derive(Default)]
struct Session {
    refusal: Option<Refusal>,
    info: SessionInfo,
    ended: Option<Ended>,
    past: Vec<PastProfile>,
    asked: RefCell<Vec<String>>,
}

impl Session {
    fn answer(&self, asked: String) -> Result<(), Refusal> {
        self.asked.borrow_mut().push(asked);
        self.refusal.clone().map_or(Ok(()), Err)
    }
}

impl Control for Session {
    fn start(&self, request: StartRequest) -> Result<(), Refusal> {
        let mut asked = format!("start {} {:?}", request.interval_micros, request.timeout_seconds);
        match &request.threads {
            ThreadChoice::Server => {}
            ThreadChoice::All => asked += " all",
            ThreadChoice::Named(names @ ThreadNames::Exact(_)) => asked += &format!(" exact {:?}", names.texts()),
            ThreadChoice::Named(names @ ThreadNames::Patterns(_)) => asked += &format!(" regex {:?}", names.texts()),
        }
        if request.ignore_sleeping {
            asked += " awake";
        }
        if let Some(millis) = request.only_ticks_over_millis {
            asked += &format!(" over {millis}");
        }
        match (request.view.grouping, request.view.show_interpreter) {
            (Grouping::ByPool, false) => {}
            (grouping, show_interpreter) => asked += &format!(" {grouping:?} {show_interpreter}"),
        }
        if request.save_to_file {
            asked += " file";
        }
        if let Some(comment) = &request.comment {
            asked += &format!(" {comment:?}");
        }
        self.answer(asked)
    }
    fn stop(&self, request: StopRequest) -> Result<Ended, Refusal> {
        let to = match request.to {
            Destination::AsStarted => "",
            Destination::File => " file",
            Destination::Server => " server",
        };
        self.answer(format!("stop{to} {:?}", request.comment))?;
        Ok(self.ended.unwrap_or(Ended::Session))
    }
    fn cancel(&self, _by: &Requester) -> Result<Ended, Refusal> {
        self.answer("cancel".to_owned())?;
        Ok(self.ended.unwrap_or(Ended::Session))
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn toggle_monitor(&self, slow: SlowTicks, _by: &Requester) -> MonitorChange {
        self.asked.borrow_mut().push(format!("monitor {slow:?}"));
        MonitorChange::Started(slow)
    }
    fn report_health(&self, _by: &Requester) -> Result<(), Refusal> {
        self.answer("report health".to_owned())
    }

    fn activity(&self) -> (WallMillis, Vec<PastProfile>) {
        (WallMillis(1_000_000_000), self.past.clone())
    }
    fn info(&self) -> SessionInfo {
        self.info.clone()
    }
}

/// The line as one argument, as a server splits it by our usages (two words and a message), and word by word.
fn shapes(line: &str) -> Vec<Vec<String>> {
    let owned = |parts: Vec<&str>| parts.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut shapes = vec![owned(vec![line]), owned(line.splitn(3, ' ').collect())];
    // Word by word, runs of blanks are gone: the same line only where there are none.
    if !line.contains("  ") && !line.contains('\t') {
        shapes.push(owned(line.split(' ').collect()));
    }
    shapes
}

/// The answer on the console, and what the session was asked for.
fn answer(session: &Session, line: &str) -> (String, Vec<String>) {
    let mut answers = shapes(line).into_iter().map(|arguments| {
        session.asked.borrow_mut().clear();
        let lines = run(&arguments, &Requester::Console, &Granted::all(), session);
        let text: Vec<String> = lines.iter().map(|line| line.render(Audience::Console)).collect();
        (text.join("\n"), session.asked.take())
    });
    let first = answers.next().unwrap();
    for other in answers {
        assert_eq!(other, first, "{line:?} depends on how it is split");
    }
    first
}

#[test]
fn good_lines_ask_for_the_right_thing() {
    for (line, asked, expected) in GOOD {
        let (text, requests) = answer(&Session::default(), line);
        assert_eq!(
            (text.as_str(), requests.join(";").as_str()),
            (*expected, *asked),
            "{line:?}"
        );
    }
}

#[test]
fn all_other_lines_ask_for_nothing() {
    for (line, expected) in OTHER {
        let (text, requests) = answer(&Session::default(), line);
        assert_eq!(text, *expected, "{line:?}");
        assert!(requests.is_empty(), "{line:?} asked for {requests:?}");
    }
}

#[test]
fn the_tables_are_large_and_hold_no_line_twice() {
    let mut lines: Vec<&str> = GOOD
        .iter()
        .map(|row| row.0)
        .chain(OTHER.iter().map(|row| row.0))
        .collect();
    assert!(lines.len() >= 120, "{}", lines.len());
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), count);
}

#[test]
fn endless_lines_are_refused_by_their_length() {
    let too_long = "[⚡] The command is too long: at most 4096 bytes.";
    for line in [
        format!("profiler start{}", " --interval 4".repeat(10_000)),
        "\"".repeat(5_000),
        format!("profiler stop --comment {}", "x".repeat(1 << 20)),
        " ".repeat(1 << 16),
    ] {
        let (text, requests) = answer(&Session::default(), &line);
        assert_eq!(text, too_long);
        assert!(requests.is_empty());
    }
    let longest = "x".repeat(500);
    let (text, requests) = answer(&Session::default(), &format!("profiler stop --comment {longest}"));
    assert_eq!((text.as_str(), requests.len()), (STOPPED, 1));
    assert_eq!(
        answer(&Session::default(), &format!("profiler stop --comment {longest}x")).0,
        COMMENT
    );
}

#[test]
fn refusals_say_what_to_do() {
    for (line, refusal, expected) in [
        (
            "profiler start",
            Refusal::AlreadyRunning {
                by: "§cSteve\n".to_owned(),
                since_seconds: 75,
            },
            "[⚡] The profiler is running already: Steve started it 1 min 15 s ago. Stop it with /spark profiler stop.",
        ),
        ("profiler stop", Refusal::NotRunning, IDLE),
        ("profiler cancel", Refusal::NotRunning, IDLE),
        (
            "profiler start",
            Refusal::Exporting(ExportStep::Naming),
            "[⚡] The last profile is not done yet: its functions are being named. Try again when it is.",
        ),
        (
            "profiler cancel",
            Refusal::Exporting(ExportStep::Writing),
            "[⚡] The last profile is not done yet: it is being written to a file. Try again when it is.",
        ),
        (
            "profiler stop",
            Refusal::Exporting(ExportStep::Uploading {
                sent: 2_048,
                bytes: 6_000,
            }),
            "[⚡] The last profile is not done yet: it is being uploaded, 2 KiB of 6 KiB. Try again when it is, or break it off: \
             /spark profiler stop --save-to-file saves it to a file, /spark profiler cancel throws it away.",
        ),
        (
            "profiler stop",
            Refusal::EndingAlready,
            "[⚡] The profiler is being stopped already.",
        ),
        (
            "profiler start",
            Refusal::ServerThreadUnknown,
            "[⚡] The server has not ticked yet. Try again when it has finished starting.",
        ),
        (
            "profiler start",
            Refusal::ShuttingDown,
            "[⚡] The plugin is being disabled.",
        ),
    ] {
        let session = Session {
            refusal: Some(refusal),
            ..Session::default()
        };
        assert_eq!(answer(&session, line).0, expected, "{line}");
    }
}

fn running() -> RunningInfo {
    RunningInfo {
        elapsed_seconds: 125,
        samples: 31_250,
        lost: 0,
        interval_micros: 4_000,
        threads: 1,
        python: PythonDiagnostics {
            state: PythonState::Active,
            version: "3.13.0".to_owned(),
            deepest: 37,
            codes: [10, 20, 1_000, 4, 0],
            ..PythonDiagnostics::default()
        },
        sampler: SamplerDiagnostics::default(),
        slow_ticks: None,
        started_by: Requester::Console,
        timeout_left_seconds: None,
    }
}

fn info(change: impl FnOnce(&mut RunningInfo)) -> String {
    let mut running = running();
    change(&mut running);
    let info = SessionInfo {
        running: Some(running),
        ..SessionInfo::default()
    };
    answer(
        &Session {
            info,
            ..Session::default()
        },
        "profiler info",
    )
    .0
}

#[test]
fn info_shows_the_running_session() {
    assert_eq!(
        info(|running| (running.sampler.samples, running.sampler.attributed) = (31_250, 23_437)),
        "[⚡] Profiling for 2 min 5 s, started by the console: 31,250 samples of 1 thread, one every 4 ms.
    Python 3.13.0: 1,034 functions seen, in 75 % of the samples, at most 37 calls deep."
    );
    assert_eq!(
        info(|running| {
            running.started_by = Requester::Player {
                name: "Álex §k".to_owned(),
                unique_id: [7; 16],
            };
            running.threads = 3;
            running.samples = 1;
            running.timeout_left_seconds = Some(25);
            running.lost = 12;
            running.sampler.losses.add(SampleLoss::TimedOut, 3);
            running.sampler.losses.add(SampleLoss::NoSlot, 9);
            running.python = PythonDiagnostics::default();
        }),
        "[⚡] Profiling for 2 min 5 s, started by Álex: 1 sample of 3 threads, one every 4 ms; stops by itself in 25 s.
    Python: none in this server, native frames only.
    Lost: 12 samples (9 too many at once, 3 no answer in time)."
    );
    assert!(
        info(|running| {
            running.python.state = PythonState::Unsupported("Python 3.11 lacks sys.monitoring.".to_owned());
            running.python.version = "3.11.7".to_owned();
        })
        .ends_with("\n    Python 3.11.7: native frames only: Python 3.11 lacks sys.monitoring.")
    );
}

#[test]
fn info_says_how_many_ticks_were_slow() {
    let ticks = |kept, longest_nanos| {
        info(|running| {
            let figures = TickFigures {
                seen: 2_400,
                kept,
                longest_nanos,
                ..TickFigures::default()
            };
            running.slow_ticks = Some((60, figures));
        })
    };
    assert!(ticks(7, 203_456_789).ends_with("\n    Ticks over 60 ms: 7 of 2,400, the longest took 203.456 ms."));
    assert!(ticks(0, 0).ends_with("\n    Ticks over 60 ms: 0 of 2,400."));
}

#[test]
fn info_says_how_far_python_frames_can_be_trusted() {
    let audited = |made, disagreed| {
        info(|running| {
            running.python.audits.made = made;
            running.python.audits.disagreed = disagreed;
        })
    };
    assert!(
        info(|running| running.python.threads_refused = 2)
            .ends_with("in 0 % of the samples, at most 37 calls deep, 2 threads had no room.")
    );
    assert!(audited(1, 0).ends_with("at most 37 calls deep, checked once."));
    assert!(audited(1_250, 0).ends_with("at most 37 calls deep, checked 1,250 times."));
    assert!(audited(1_250, 2).ends_with("checked 1,250 times, with a wrong function in 2 of them."));
    let swapping = |names: &[&str]| {
        info(|running| {
            running.python.swapping_threads = names.len() as u64;
            running.python.swapping = names.iter().map(|name| (*name).to_owned()).collect();
        })
    };
    assert!(
        swapping(&["MC_SERVER"]).ends_with("\n    1 thread swaps stacks (greenlets), native frames only: MC_SERVER.")
    );
    assert!(
        swapping(&["one", "two"]).ends_with("\n    2 threads swap stacks (greenlets), native frames only: one, two.")
    );
}

#[test]
fn info_says_when_a_profile_is_being_saved() {
    let session = Session {
        info: SessionInfo {
            exporting: Some(ExportStep::Writing),
            ..SessionInfo::default()
        },
        ..Session::default()
    };
    assert_eq!(
        answer(&session, "profiler info").0,
        "[⚡] The last profile is not done yet: it is being written to a file."
    );
}

#[test]
fn info_says_that_a_session_is_starting_and_that_profiles_wait_to_be_saved() {
    let with = |info| {
        let session = Session {
            info,
            ..Session::default()
        };
        answer(&session, "profiler info").0
    };
    let starting = SessionInfo {
        starting: true,
        ..SessionInfo::default()
    };
    assert_eq!(with(starting), "[⚡] The profiler is starting.");
    let waiting = SessionInfo {
        unsaved: 2,
        ..SessionInfo::default()
    };
    assert_eq!(
        with(waiting),
        "[⚡] The profiler is not running. Start it with /spark profiler start.\n    \
         Not saved yet: 2 earlier profiles. Try again with /spark profiler stop."
    );
    let both = SessionInfo {
        running: Some(running()),
        unsaved: 1,
        ..SessionInfo::default()
    };
    assert!(with(both).ends_with("\n    Not saved yet: 1 earlier profile, tried again when this session is stopped."),);
}

#[test]
fn players_get_the_same_words_in_colour() {
    let session = Session::default();
    for (line, _) in OTHER {
        let lines = run(&[*line], &Requester::Console, &Granted::all(), &session);
        for line in lines {
            let coloured = line.render(Audience::Player);
            let mut plain = String::new();
            let mut characters = coloured.chars();
            while let Some(character) = characters.next() {
                match character {
                    '§' => assert!(characters.next().is_some_and(|code| code.is_ascii_alphanumeric())),
                    other => plain.push(other),
                }
            }
            assert_eq!(plain, line.render(Audience::Console));
        }
    }
}

#[test]
fn a_pattern_that_is_none_is_refused_with_the_reason() {
    let (text, asked) = answer(&Session::default(), "profiler start --thread ( --regex");
    assert!(text.starts_with("[⚡] \"(\" is not a pattern: "), "{text}");
    assert!(text.ends_with('.') && !text.contains('\n'), "{text}");
    assert!(asked.is_empty());
}

#[test]
fn a_stretched_interval_is_said() {
    let mut info = running();
    info.sampler.rounds = 1_000;
    info.sampler.rounds_late = 400;
    info.sampler.interval_nanos = info.interval_micros * 1_500;
    let session = |info: RunningInfo| Session {
        info: SessionInfo {
            running: Some(info),
            ..SessionInfo::default()
        },
        ..Session::default()
    };
    let (text, _) = answer(&session(info.clone()), "profiler info");
    assert!(text.contains("Samples are 6 ms apart, not 4 ms: "), "{text}");
    info.sampler.rounds_late = 10;
    let (text, _) = answer(&session(info), "profiler info");
    assert!(!text.contains("apart"), "{text}");
}

#[test]
fn what_is_stopped_or_thrown_away_is_said() {
    for (line, ended, expected) in [
        (
            "profiler stop",
            Ended::Wait(2),
            "[⚡] Trying again to upload or save 2 profiles.",
        ),
        (
            "profiler upload",
            Ended::Wait(2),
            "[⚡] Trying again to upload 2 profiles.",
        ),
        (
            "profiler stop --save-to-file",
            Ended::Wait(1),
            "[⚡] Trying again to save 1 profile.",
        ),
        (
            "profiler stop --save-to-file",
            Ended::Upload,
            "[⚡] Breaking the upload off. The profile will be saved to a file.",
        ),
        (
            "profiler cancel",
            Ended::Wait(3),
            "[⚡] Throwing away 3 profiles that could not be saved.",
        ),
        (
            "profiler cancel",
            Ended::Upload,
            "[⚡] Breaking the upload off without saving anything.",
        ),
    ] {
        let session = Session {
            ended: Some(ended),
            ..Session::default()
        };
        assert_eq!(answer(&session, line).0, expected, "{line}");
    }
}

/// A list of `count` profiles, the newest a minute old and each an hour older than the one before.
fn past(count: i64) -> Session {
    let entry = |number: i64| PastProfile {
        kind: PastKind::Profile,
        time: 1_000_000_000 - 60_000 - number * 3_600_000,
        user: "§cStev\u{7}e".to_owned(),
        seconds: 125,
        samples: 31_250,
        place: if number % 2 == 0 {
            ProfilePlace::Link(format!("https://spark.lucko.me/abc{number}"))
        } else {
            ProfilePlace::File(format!("plugins/spark/profiles/{number}.sparkprofile"))
        },
    };
    Session {
        past: (0..count).map(entry).collect(),
        ..Session::default()
    }
}

#[test]
fn past_profiles_are_listed_page_by_page() {
    assert_eq!(
        answer(&past(2), "activity").0,
        "[⚡] Past profiles, newest first:
    1 min ago by Steve, 31,250 samples in 2 min 5 s: https://spark.lucko.me/abc0
    1 h ago by Steve, 31,250 samples in 2 min 5 s: plugins/spark/profiles/1.sparkprofile"
    );
    let first = answer(&past(17), "activity").0;
    assert!(
        first.starts_with("[⚡] Past profiles, newest first (page 1 of 3):\n    1 min ago"),
        "{first}"
    );
    assert!(first.ends_with("\n    More: /spark activity --page 2"), "{first}");
    assert_eq!(first.lines().count(), 10);
    let last = answer(&past(17), "activity --page 3").0;
    assert_eq!(last.lines().count(), 2, "{last}");
    assert!(last.contains("16 h ago by"), "{last}");
    assert_eq!(
        answer(&past(17), "activity --page 4").0,
        "[⚡] There is no page 4: the last is 3."
    );
    assert_eq!(
        answer(&past(17), "activity --page 18446744073709551615").0,
        "[⚡] There is no page 18446744073709551615: the last is 3."
    );
}

#[test]
fn each_permission_covers_its_part() {
    let session = Session::default();
    let said = |names: &[&str], line: &str| {
        session.asked.borrow_mut().clear();
        let granted = Granted::ask(|name| names.contains(&name));
        let lines = run(&[line], &Requester::Console, &granted, &session);
        let text: Vec<String> = lines.iter().map(|line| line.render(Audience::Console)).collect();
        (text.join("\n"), session.asked.take().len())
    };
    let none = "[⚡] This needs the permission endstone.command.spark.".to_owned();
    let profiler = "[⚡] This needs the permission spark.profiler or endstone.command.spark.".to_owned();
    let activity = "[⚡] This needs the permission spark.activity or endstone.command.spark.".to_owned();
    for line in ["", "help", "version", "profiler start", "activity", "nonsense", "\""] {
        assert_eq!(said(&[], line), (none.clone(), 0), "{line}");
    }
    let own = &["spark.profiler"][..];
    assert_eq!(said(own, "profiler start"), (STARTED_4.to_owned(), 1));
    assert_eq!(said(own, "activity"), (activity, 0));
    assert_eq!(said(own, "help"), (HELP.to_owned(), 0));
    let list = &["spark.activity"][..];
    assert_eq!(said(list, "activity"), (NOTHING_YET.to_owned(), 0));
    for line in ["profiler start", "profiler stop", "profiler info", "profiler cancel"] {
        assert_eq!(said(list, line), (profiler.clone(), 0), "{line}");
    }
    for (permission, line) in [
        ("spark.tps", "tps"),
        ("spark.health", "health"),
        ("spark.ping", "ping"),
        ("spark.tickmonitor", "tickmonitor"),
    ] {
        let refusal = format!("[⚡] This needs the permission {permission} or endstone.command.spark.");
        assert_eq!(said(own, line), (refusal, 0));
        for granted in [permission, "endstone.command.spark"] {
            let (text, _) = said(&[granted], line);
            assert!(!text.contains("permission"), "{granted}: {text}");
        }
    }
    let all = &["endstone.command.spark"][..];
    assert_eq!(said(all, "profiler cancel"), (CANCELLED.to_owned(), 1));
    assert_eq!(said(all, "activity"), (NOTHING_YET.to_owned(), 0));
}
