//! Command lines and what they answer, word for word. Each is given to the parser in all shapes that a server may split it into.

use std::cell::RefCell;

use endstone_spark::command::{Audience, run};
use endstone_spark::model::{
    Grouping, PythonDiagnostics, PythonState, SampleLoss, SamplerDiagnostics, ThreadChoice, ThreadNames,
};
use endstone_spark::session::{Control, Refusal, Requester, RunningInfo, SessionInfo, StartRequest, StopRequest};

/// What the session answers, and what it was asked for.
#[derive(Default)]
struct Session {
    refusal: Option<Refusal>,
    info: SessionInfo,
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
        match (request.view.grouping, request.view.show_interpreter) {
            (Grouping::ByPool, false) => {}
            (grouping, show_interpreter) => asked += &format!(" {grouping:?} {show_interpreter}"),
        }
        self.answer(asked)
    }
    fn stop(&self, request: StopRequest) -> Result<(), Refusal> {
        self.answer(format!("stop {} {:?}", request.save_to_file, request.comment))
    }
    fn cancel(&self, _by: &Requester) -> Result<(), Refusal> {
        self.answer("cancel".to_owned())
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
        let lines = run(&arguments, &Requester::Console, session);
        let text: Vec<String> = lines.iter().map(|line| line.render(Audience::Console)).collect();
        (text.join("\n"), session.asked.take())
    });
    let first = answers.next().unwrap();
    for other in answers {
        assert_eq!(other, first, "{line:?} depends on how it is split");
    }
    first
}

const HELP: &str = concat!(
    "[⚡] spark ",
    env!("CARGO_PKG_VERSION"),
    " profiles this server. Commands:
    /spark profiler start [--interval MS] [--timeout SECONDS]: start sampling the server thread
    ... start [--thread NAME]... [--regex] [--ignore-sleeping]: other threads (* for all, with --regex by pattern); leave out waiting
    ... start [--not-combined] [--combine-all] [--show-interpreter]: one tree per thread, one for all; keep Python's own call functions
    /spark profiler stop [--save-to-file] [--comment \"TEXT\"]: stop, and save the profile to a file
    /spark profiler info: show how the profiler is doing
    /spark profiler cancel: stop, and throw the samples away"
);
const STARTED_4: &str = "[⚡] Starting the profiler, one sample every 4 ms. Stop it with /spark profiler stop.";
const STOPPED: &str =
    "[⚡] Stopping the profiler. The profile will be saved to a file: this version cannot upload yet.";
const STOPPED_TO_FILE: &str = "[⚡] Stopping the profiler. The profile will be saved to a file.";
const CANCELLED: &str = "[⚡] Stopping the profiler without saving anything.";
const IDLE: &str = "[⚡] The profiler is not running. Start it with /spark profiler start.";
const INTERVAL: &str = "[⚡] --interval must be a number of milliseconds from 0.1 to 1000.";
const THREAD: &str = "[⚡] --thread needs the name of a thread, or * for all. It may be given several times.";
const TIMEOUT: &str = "[⚡] --timeout must be a whole number of seconds from 11 to 86400.";
const COMMENT: &str = "[⚡] --comment needs a text of 1 to 500 characters, for example --comment \"lag at spawn\".";
const QUOTE: &str = "[⚡] A quote is not closed. Write texts as \"like this\".";
const NO_ACTION: &str = "[⚡] The profiler needs to know what to do. Use: start, stop, info, cancel.";

/// Lines that ask the session for something: the line, what it asks for, the answer.
const GOOD: &[(&str, &str, &str)] = &[
    ("profiler start", "start 4000 None", STARTED_4),
    ("sampler start", "start 4000 None", STARTED_4),
    ("PROFILER Start", "start 4000 None", STARTED_4),
    ("  profiler   start  ", "start 4000 None", STARTED_4),
    ("profiler\tstart", "start 4000 None", STARTED_4),
    ("profiler start --interval 4", "start 4000 None", STARTED_4),
    ("profiler start --interval=4", "start 4000 None", STARTED_4),
    ("profiler start --thread *", "start 4000 None all", STARTED_4),
    ("profiler start --thread a --thread=*", "start 4000 None all", STARTED_4),
    ("profiler start --thread * --regex", "start 4000 None all", STARTED_4),
    (
        "profiler start --thread \"IO Thread\" --THREAD net",
        "start 4000 None exact [\"IO Thread\", \"net\"]",
        STARTED_4,
    ),
    (
        "profiler start --thread IO Thread",
        "start 4000 None exact [\"IO Thread\"]",
        STARTED_4,
    ),
    (
        "profiler start --regex --thread worker-[0-9]+ --ignore-sleeping",
        "start 4000 None regex [\"worker-[0-9]+\"] awake",
        STARTED_4,
    ),
    (
        "profiler start --show-interpreter",
        "start 4000 None ByPool true",
        STARTED_4,
    ),
    (
        "profiler start --not-combined",
        "start 4000 None Separate false",
        STARTED_4,
    ),
    (
        "profiler start --combine-all --show-interpreter",
        "start 4000 None AllInOne true",
        STARTED_4,
    ),
    ("profiler start --INTERVAL 4", "start 4000 None", STARTED_4),
    ("profiler start --interval \"4\"", "start 4000 None", STARTED_4),
    ("profiler start --interval=\"4\"", "start 4000 None", STARTED_4),
    ("profiler start --interval 4 --interval 4", "start 4000 None", STARTED_4),
    ("profiler start --interval 004.000", "start 4000 None", STARTED_4),
    ("\"profiler\" \"start\"", "start 4000 None", STARTED_4),
    (
        "profiler start --interval 0.1",
        "start 100 None",
        "[⚡] Starting the profiler, one sample every 0.1 ms. Stop it with /spark profiler stop.",
    ),
    (
        "profiler start --interval 2.125",
        "start 2125 None",
        "[⚡] Starting the profiler, one sample every 2.125 ms. Stop it with /spark profiler stop.",
    ),
    (
        "profiler start --interval 1000",
        "start 1000000 None",
        "[⚡] Starting the profiler, one sample every 1000 ms. Stop it with /spark profiler stop.",
    ),
    (
        "profiler start --timeout 11",
        "start 4000 Some(11)",
        "[⚡] Starting the profiler, one sample every 4 ms. It stops by itself after 11 s.",
    ),
    (
        "profiler start --timeout=86400 --interval 10",
        "start 10000 Some(86400)",
        "[⚡] Starting the profiler, one sample every 10 ms. It stops by itself after 24 h.",
    ),
    (
        "profiler start --interval 10 --timeout 90",
        "start 10000 Some(90)",
        "[⚡] Starting the profiler, one sample every 10 ms. It stops by itself after 1 min 30 s.",
    ),
    ("profiler stop", "stop false None", STOPPED),
    ("sampler stop", "stop false None", STOPPED),
    ("profiler stop --save-to-file", "stop true None", STOPPED_TO_FILE),
    (
        "profiler stop --save-to-file --save-to-file",
        "stop true None",
        STOPPED_TO_FILE,
    ),
    ("profiler stop --comment lag", "stop false Some(\"lag\")", STOPPED),
    (
        "profiler stop --comment lag at spawn",
        "stop false Some(\"lag at spawn\")",
        STOPPED,
    ),
    (
        "profiler stop --comment \"lag at spawn\"",
        "stop false Some(\"lag at spawn\")",
        STOPPED,
    ),
    (
        "profiler stop --comment=\"lag at spawn\" --save-to-file",
        "stop true Some(\"lag at spawn\")",
        STOPPED_TO_FILE,
    ),
    (
        "profiler stop --save-to-file --comment it's fine",
        "stop true Some(\"it's fine\")",
        STOPPED_TO_FILE,
    ),
    (
        "profiler stop --comment \"say \\\"hi\\\"\"",
        "stop false Some(\"say \\\"hi\\\"\")",
        STOPPED,
    ),
    (
        "profiler stop --comment \"--save-to-file\"",
        "stop false Some(\"--save-to-file\")",
        STOPPED,
    ),
    ("profiler stop --comment a=b", "stop false Some(\"a=b\")", STOPPED),
    ("profiler stop --comment=a=b", "stop false Some(\"a=b\")", STOPPED),
    (
        "profiler stop --comment §cred§r and §lbold",
        "stop false Some(\"red and bold\")",
        STOPPED,
    ),
    ("profiler stop --comment \"a\nb\"", "stop false Some(\"a b\")", STOPPED),
    (
        "profiler stop --comment bell\u{7}\u{1b}[31m",
        "stop false Some(\"bell[31m\")",
        STOPPED,
    ),
    (
        "profiler stop --comment \u{202e}gniht",
        "stop false Some(\"gniht\")",
        STOPPED,
    ),
    (
        "profiler stop --comment 🦀 naïve 東京",
        "stop false Some(\"🦀 naïve 東京\")",
        STOPPED,
    ),
    ("profiler stop --comment --save-to-file", "", COMMENT),
    ("profiler cancel", "cancel", CANCELLED),
    ("sampler cancel", "cancel", CANCELLED),
];

/// Lines that ask for nothing: the line and the answer.
const OTHER: &[(&str, &str)] = &[
    ("", HELP),
    ("   ", HELP),
    ("help", HELP),
    ("HELP", HELP),
    ("profiler", HELP),
    ("sampler", HELP),
    ("profiler info", IDLE),
    ("sampler INFO", IDLE),
    // Not commands.
    ("tps", "[⚡] Unknown command \"tps\". Use: help, profiler."),
    ("prof", "[⚡] Unknown command \"prof\". Use: help, profiler."),
    ("\"\"", "[⚡] Unknown command \"\". Use: help, profiler."),
    ("--help", "[⚡] Unknown command \"--help\". Use: help, profiler."),
    (
        "profiler start help",
        "[⚡] Did not expect \"help\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "help profiler",
        "[⚡] Did not expect \"profiler\" after \"help\". It takes nothing more.",
    ),
    (
        "profiler begin",
        "[⚡] Unknown profiler command \"begin\". Use: start, stop, info, cancel.",
    ),
    (
        "profiler open",
        "[⚡] Unknown profiler command \"open\". Use: start, stop, info, cancel.",
    ),
    (
        "profiler upload",
        "[⚡] Unknown profiler command \"upload\". Use: start, stop, info, cancel.",
    ),
    (
        "profiler \"--stop\"",
        "[⚡] Unknown profiler command \"--stop\". Use: start, stop, info, cancel.",
    ),
    ("profiler --stop", NO_ACTION),
    ("profiler --interval 4", NO_ACTION),
    // Not options.
    (
        "profiler start --comment x",
        "[⚡] \"profiler start\" has no option --comment. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler start --intervall 4",
        "[⚡] \"profiler start\" has no option --intervall. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler start --",
        "[⚡] \"profiler start\" has no option --. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler start --=4",
        "[⚡] \"profiler start\" has no option --. Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler stop --interval 4",
        "[⚡] \"profiler stop\" has no option --interval. Use: --save-to-file, --comment \"TEXT\".",
    ),
    (
        "profiler info --all",
        "[⚡] \"profiler info\" has no option --all. It takes nothing more.",
    ),
    (
        "profiler cancel --force",
        "[⚡] \"profiler cancel\" has no option --force. It takes nothing more.",
    ),
    (
        "profiler info now",
        "[⚡] Did not expect \"now\" after \"profiler info\". It takes nothing more.",
    ),
    (
        "profiler start 4",
        "[⚡] Did not expect \"4\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler start -interval 4",
        "[⚡] Did not expect \"-interval\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler start \"--interval\" 4",
        "[⚡] Did not expect \"--interval\" after \"profiler start\". Use: --thread NAME, --regex, --interval MS, --timeout SECONDS, --ignore-sleeping, --not-combined, --combine-all, --show-interpreter.",
    ),
    (
        "profiler stop --save-to-file yes",
        "[⚡] --save-to-file takes no value.",
    ),
    ("profiler stop --save-to-file=", "[⚡] --save-to-file takes no value."),
    // Not values.
    ("profiler start --interval", INTERVAL),
    ("profiler start --interval=", INTERVAL),
    ("profiler start --thread", THREAD),
    ("profiler start --thread \"\"", THREAD),
    ("profiler start --thread --regex", THREAD),
    (
        "profiler start --regex",
        "[⚡] --regex makes patterns of thread names. Give at least one, for example --thread \"worker-.*\" --regex.",
    ),
    ("profiler start --thread a --regex b", "[⚡] --regex takes no value."),
    (
        "profiler start --ignore-sleeping yes",
        "[⚡] --ignore-sleeping takes no value.",
    ),
    ("profiler start --interval --timeout 30", INTERVAL),
    ("profiler start --interval $(sleep 5)", INTERVAL),
    ("profiler start --timeout 30 --interval", INTERVAL),
    ("profiler start --interval 0", INTERVAL),
    ("profiler start --interval 0.099", INTERVAL),
    ("profiler start --interval 1000.001", INTERVAL),
    ("profiler start --interval 1001", INTERVAL),
    ("profiler start --interval -4", INTERVAL),
    ("profiler start --interval +4", INTERVAL),
    ("profiler start --interval 4ms", INTERVAL),
    ("profiler start --interval 4 5", INTERVAL),
    ("profiler start --interval 4,5", INTERVAL),
    ("profiler start --interval 1.2.3", INTERVAL),
    ("profiler start --interval .5", INTERVAL),
    ("profiler start --interval 5.", INTERVAL),
    ("profiler start --interval 1e1", INTERVAL),
    ("profiler start --interval 0x4", INTERVAL),
    ("profiler start --interval NaN", INTERVAL),
    ("profiler start --interval inf", INTERVAL),
    ("profiler start --interval ４", INTERVAL),
    ("profiler start --interval 99999999999999999999999999999", INTERVAL),
    ("profiler start --timeout", TIMEOUT),
    ("profiler start --timeout 10", TIMEOUT),
    ("profiler start --timeout 0", TIMEOUT),
    ("profiler start --timeout 86401", TIMEOUT),
    ("profiler start --timeout -30", TIMEOUT),
    ("profiler start --timeout 30.5", TIMEOUT),
    ("profiler start --timeout 30s", TIMEOUT),
    ("profiler start --timeout 18446744073709551616", TIMEOUT),
    ("profiler stop --comment", COMMENT),
    ("profiler stop --comment \"\"", COMMENT),
    ("profiler stop --comment \"   \"", COMMENT),
    ("profiler stop --comment §c", COMMENT),
    ("profiler stop --comment \u{7}", COMMENT),
    // Contradictions and quotes.
    (
        "profiler start --not-combined --combine-all",
        "[⚡] --not-combined and --combine-all exclude each other. Give one of them.",
    ),
    ("profiler start --combine-all yes", "[⚡] --combine-all takes no value."),
    (
        "profiler start --interval 4 --interval 8",
        "[⚡] --interval is given twice with different values. Give it once.",
    ),
    (
        "profiler start --interval 4 --interval",
        "[⚡] --interval is given twice with different values. Give it once.",
    ),
    (
        "profiler stop --comment a --comment b",
        "[⚡] --comment is given twice with different values. Give it once.",
    ),
    ("profiler stop --comment \"open", QUOTE),
    ("profiler stop --comment \"a\" \"b", QUOTE),
    ("\"", QUOTE),
    // Foreign text in answers is cleaned and short.
    (
        "profiler §cstart",
        "[⚡] Unknown profiler command \"start\". Use: start, stop, info, cancel.",
    ),
    (
        "profiler start\u{200b}",
        "[⚡] Unknown profiler command \"start\". Use: start, stop, info, cancel.",
    ),
    ("\u{1b}[2J", "[⚡] Unknown command \"[2J\". Use: help, profiler."),
    (
        "profiler aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "[⚡] Unknown profiler command \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\". Use: start, stop, info, cancel.",
    ),
    (
        "\u{fffd}\u{fffd}",
        "[⚡] Unknown command \"\u{fffd}\u{fffd}\". Use: help, profiler.",
    ),
];

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
            Refusal::Exporting,
            "[⚡] The last profile is still being saved. Try again when it is done.",
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
    Python 3.13.0: 1,034 functions seen, in 75 % of the samples, deepest stack 37."
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
    Lost: 12 samples (9 no slot, 3 timed out)."
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
fn info_says_how_far_python_frames_can_be_trusted() {
    let audited = |made, disagreed| {
        info(|running| {
            running.python.audits.made = made;
            running.python.audits.disagreed = disagreed;
        })
    };
    assert!(
        info(|running| running.python.threads_refused = 2)
            .ends_with("in 0 % of the samples, deepest stack 37, 2 threads had no room.")
    );
    assert!(audited(1, 0).ends_with("deepest stack 37, compared with the interpreter once."));
    assert!(audited(1_250, 0).ends_with("deepest stack 37, compared with the interpreter 1,250 times."));
    assert!(
        audited(1_250, 2).ends_with("compared with the interpreter 1,250 times, 2 of them showed a wrong function.")
    );
}

#[test]
fn info_says_when_a_profile_is_being_saved() {
    let session = Session {
        info: SessionInfo {
            exporting: true,
            ..SessionInfo::default()
        },
        ..Session::default()
    };
    assert_eq!(
        answer(&session, "profiler info").0,
        "[⚡] The last profile is being saved."
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
         Not saved yet: 2 profiles. Try again with /spark profiler stop."
    );
}

#[test]
fn players_get_the_same_words_in_colour() {
    let session = Session::default();
    for (line, _) in OTHER {
        let lines = run(&[*line], &Requester::Console, &session);
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
    assert!(text.contains("The interval is stretched to 6 ms: "), "{text}");
    info.sampler.rounds_late = 10;
    let (text, _) = answer(&session(info), "profiler info");
    assert!(!text.contains("stretched"), "{text}");
}
