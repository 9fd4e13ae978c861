//! `./dev demo`: one profile, from nothing to a file, and what is in it.

use super::arguments::Arguments;
use super::{CommandError, Outcome};
use harness::{Lab, Profile, Python, Server, Step, TreeOptions, note, profile_files};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

const SECONDS: u64 = 15;

/// Longer would be no demonstration.
const MOST_SECONDS: u64 = 3600;

/// A person who waits hears of it this often.
const REMINDER_SECONDS: u64 = 5;

/// To start a session: the first one calibrates itself on the interpreter.
const START: Duration = Duration::from_secs(30);

/// To name the symbols of a whole server and write the file.
const SAVE: Duration = Duration::from_secs(120);

/// A length of time that can be asked for.
struct Seconds(u64);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = text.parse().ok().filter(|seconds| (1..=MOST_SECONDS).contains(seconds));
        seconds
            .map(Seconds)
            .ok_or_else(|| format!("1 to {MOST_SECONDS} can be given"))
    }
}

pub(super) fn run(arguments: Vec<String>) -> Outcome {
    let mut arguments = Arguments::new("demo", arguments);
    let version = arguments.python()?;
    let Seconds(seconds) = arguments.option("--seconds")?.unwrap_or(Seconds(SECONDS));
    arguments.finish()?;

    let lab = Lab::open()?;
    let python = match version {
        Some(version) => lab.python(version)?,
        None => lab.default_python()?,
    };
    note(format!(
        "Python {} ({}), {}",
        python.full_version,
        python.origin,
        python.executable.display()
    ));
    lab.endstone(python.version)?;
    let dir = empty_folder(&lab)?;

    let step = Step::start("Starting the stand-in server with its sample plugins");
    let mut server = lab.server(&python).folder(&dir).samples()?.start_ready()?;
    step.done();
    let saved = record(&mut server, seconds)?;
    let step = Step::start("Stopping the server");
    server.stop_cleanly()?;
    step.done();

    let file = named_file(&dir, &saved)?;
    let profile = Profile::read(&file)?;
    show(&profile, &file, &python);
    judge(&profile, &python)?;
    Ok(ExitCode::SUCCESS)
}

/// The demo's server folder, as a new server has it.
fn empty_folder(lab: &Lab) -> Result<PathBuf, CommandError> {
    let dir = lab.target().join("demo");
    match fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(CommandError::Result(format!("cannot empty {}: {error}", dir.display())))
        }
        _ => Ok(dir),
    }
}

/// Runs one session; the line that names the file.
fn record(server: &mut Server, seconds: u64) -> Result<String, CommandError> {
    let is_answer = |line: &str| line.contains("profiler is running") || line.contains("could not start");
    server.command("spark profiler start")?;
    let answer = server.wait_for(is_answer, START)?;
    note(chat(&answer));
    if answer.contains("could not start") {
        return Err(CommandError::Result("the profiler did not start".to_owned()));
    }
    let step = Step::start(format!("Profiling for {seconds} s"));
    let mut left = seconds;
    while left > 0 {
        let now = left.min(REMINDER_SECONDS);
        server.run_for(Duration::from_secs(now))?;
        left -= now;
        if left > 0 {
            note(format!("{left} s to go"));
        }
    }
    step.done();
    let is_result = |line: &str| line.contains(".sparkprofile") || line.contains("could not be saved");
    server.command("spark profiler stop --save-to-file")?;
    let result = server.wait_for(is_result, SAVE)?;
    note(chat(&result));
    if result.contains(".sparkprofile") {
        Ok(result)
    } else {
        Err(CommandError::Result("the profile was not saved".to_owned()))
    }
}

/// A console line without the server's time and level.
fn chat(line: &str) -> &str {
    line.find("[\u{26a1}]").map_or(line, |at| &line[at..])
}

/// The file in the server folder that the line names.
fn named_file(dir: &Path, line: &str) -> Result<PathBuf, CommandError> {
    let is_named = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| line.contains(&*name.to_string_lossy()))
    };
    profile_files(dir)?
        .into_iter()
        .find(is_named)
        .ok_or_else(|| CommandError::Result(format!("the file is not there that the server named: {line}")))
}

fn show(profile: &Profile, file: &Path, python: &Python) {
    println!("\n{}", profile.tree(TreeOptions::default()));
    println!(
        "Each line's time includes what is called below it: by the line above where there is a \u{2514}, else by the line it is set in under. Less"
    );
    println!("than 1 % is left out. 100 % is the time that passed.\n");
    let percent = |accept: &dyn Fn(&harness::Stack<'_>) -> bool| 100.0 * profile.share_of(accept);
    let asleep = percent(&|stack| stack.has("_sleepUntilNextTick"));
    let samples = profile
        .extra("Sampling")
        .and_then(|sampling| sampling["samples"].as_u64())
        .unwrap_or(0);
    println!(
        "summary   {:.1} s of the server thread in {samples} samples: busy {:.1} %, waiting for the next tick {asleep:.1} %",
        profile.total_millis() / 1000.0,
        100.0 - asleep
    );
    if python.version.has_monitoring() {
        let plugins: Vec<String> = profile
            .plugins()
            .iter()
            .map(|(plugin, share)| format!("{plugin} {:.1} %", 100.0 * share))
            .collect();
        println!("plugins   {}", plugins.join(", "));
    } else {
        println!(
            "plugins   not told apart: Python functions can be followed from CPython 3.12 on, this is {}",
            python.full_version
        );
    }
    println!("profile   {} (the next demo replaces it)", file.display());
    println!("open it   drag the file into https://spark.lucko.me/");
}

/// Whether the profile is what a demonstration should show.
fn judge(profile: &Profile, python: &Python) -> Result<(), CommandError> {
    let findings = profile.check();
    eprint!("{findings}");
    if !findings.is_sound() {
        return Err(CommandError::Result(
            "the viewer would stumble over this profile".to_owned(),
        ));
    }
    if profile.total_millis() <= 0.0 {
        return Err(CommandError::Result("the profile is empty".to_owned()));
    }
    let of_plugin = |stack: &harness::Stack<'_>| stack.has("[Python] endstone_market");
    match (python.version.has_monitoring(), profile.share_of(of_plugin) > 0.0) {
        (true, false) => Err(CommandError::Result(
            "no function of the sample plugin is in the profile".to_owned(),
        )),
        (false, true) => Err(CommandError::Result(
            "this Python cannot be monitored, yet the profile has its functions".to_owned(),
        )),
        _ => Ok(()),
    }
}
