//! What a server's owner sees, on the stand-in server with Endstone's released runtime: commands typed into the console, answers read from it, profiles read
//! from the disk. A test that measures has the machine for itself.

mod background;
#[path = "../bytebin/mod.rs"]
mod bytebin;
#[path = "../command_lines/mod.rs"]
mod command_lines;
mod commands;
mod console;
mod cycles;
mod disabling;
mod faults;
mod greenlets;
#[path = "../journal/independent.rs"]
mod independent;
mod lifecycle;
mod lock_held;
mod machine;
mod owners;
mod players;
mod privacy;
mod profiles;
mod pythons;
mod real_server_check;
mod recovery;
mod roots;
mod shutdown;
mod slow_disk;
mod slow_ticks;
mod sources;
mod stalls;
mod statistics;
mod threads;
mod unwinding;
mod uploads;
mod world;
#[path = "../host/src/world_plan.rs"]
mod world_plan;

use std::time::Duration;

use harness::{Lab, Profile, Python, PythonVersion, Server};
use machine::{alone, beside};

/// Enough for a slow machine to answer.
const ANSWER: Duration = Duration::from_secs(60);

/// Said when a session runs.
const RUNNING: &str = "The profiler is running";

/// Said when a profile is on disk.
const SAVED: &str = "Saved ";

/// Settings of a server that is to send nothing to anybody: nobody listens there.
const NOBODY_LISTENS: &str = "bytebinUrl = \"http://127.0.0.1:9\"\n";

fn lab() -> Lab {
    Lab::open().unwrap()
}

/// The Python of this version, or a line that says why a test is not run with it. `./dev test` sees to it that there are enough.
fn python(lab: &Lab, version: PythonVersion) -> Option<Python> {
    match lab.python_at_hand(version) {
        Ok(Some(python)) => Some(python),
        Ok(None) => {
            eprintln!("NOT RUN on Python {version}: not found");
            None
        }
        Err(error) => panic!("Python {version}: {error}"),
    }
}

/// Starts a session and waits until it samples.
fn start(server: &mut Server, flags: &str) -> String {
    server.ask(&format!("spark profiler start {flags}"), RUNNING).unwrap()
}

/// Ends a session and reads its profile.
fn stop(server: &mut Server) -> Profile {
    server.ask("spark profiler stop --save-to-file", SAVED).unwrap();
    server.last_profile().unwrap()
}

/// The profile of a session of this length.
fn profile_for(server: &mut Server, flags: &str, time: Duration) -> Profile {
    start(server, flags);
    server.run_for(time).unwrap();
    stop(server)
}

/// A number of the profile's own figures, e.g. `figure(&profile, "Sampling", "samples")`.
fn figure(profile: &Profile, group: &str, name: &str) -> f64 {
    let group_value = profile
        .extra(group)
        .unwrap_or_else(|| panic!("no {group} in the metadata"));
    group_value
        .get(name)
        .and_then(serde_json::Value::as_f64)
        .unwrap_or_else(|| panic!("no {name} in {group_value}"))
}

/// The profile opens in the viewer and has nothing that could be avoided.
fn assert_sound(profile: &Profile) {
    let findings = profile.check();
    assert!(findings.is_perfect(), "{findings:?}");
}
