//! `tools/real-server-check`, on the stand-in as on any other server.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use harness::{Lab, Linked, Python, launch_command};

use super::bytebin::{Bytebin, Mode};
use super::{NOBODY_LISTENS, alone, beside, lab};

/// One check, in a folder of its own.
struct Check {
    lab: Lab,
    python: Python,
    folder: tempfile::TempDir,
}

impl Check {
    fn new() -> Self {
        let lab = lab();
        let python = lab.default_python().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("server")).unwrap();
        Self { lab, python, folder }
    }

    fn server(&self) -> PathBuf {
        self.folder.path().join("server")
    }

    fn plugin(&self) -> PathBuf {
        self.server().join("plugins/endstone_spark.so")
    }

    /// Settings like those of every test: no upload leaves this machine.
    fn settings(&self, text: &str) {
        let data = self.server().join("plugins/spark");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("config.toml"), text).unwrap();
    }

    /// The script with these options and the stand-in's command, with nobody who could answer a question.
    fn run(&self, options: &[&str]) -> Output {
        let stand_in = launch_command(&self.lab, &self.python, &self.server()).unwrap();
        let mut script = Command::new(&self.python.executable);
        if self.python.own_libc.is_some() {
            script.env("PYTHONHOME", &self.python.home);
        }
        script
            .arg(self.lab.root().join("tools/real-server-check"))
            .args(["--seconds", "12", "--rounds", "1"])
            .arg("--server")
            .arg(self.server())
            .arg("--plugin")
            .arg(self.lab.plugin().unwrap())
            .arg("--log")
            .arg(self.folder.path().join("log"))
            .args(options)
            // The server's variables, which the script itself must not have.
            .args(["--", "env"]);
        let text = |text: &OsStr| text.to_str().unwrap().to_owned();
        for (name, _) in stand_in.get_envs().filter(|(_, value)| value.is_none()) {
            script.args(["-u".to_owned(), text(name)]);
        }
        for (name, value) in stand_in.get_envs() {
            script.args(value.map(|value| format!("{}={}", text(name), text(value))));
        }
        let program = stand_in.get_program();
        script
            .arg(program)
            .arg(self.server())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        script.output().unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn assert_passed(check: &Check, output: &Output) -> String {
    let said = said(output);
    assert!(
        output.status.success() && said.contains("\nPASSED: "),
        "{said}\n{}",
        check.log()
    );
    said
}

#[test]
fn a_server_is_profiled_idle_and_loaded_compared_and_left_as_it_was() {
    let _alone = alone();
    let check = Check::new();
    let output = check.run(&["--load", "!pattern 10 20,30", "--remove"]);
    let said = assert_passed(&check, &output);
    println!("{said}");
    let id = Linked::read(&check.lab.plugin().unwrap()).unwrap().build_id.unwrap();
    for expected in [
        "idle: 1 times without a session, 1 times with one",
        "loaded: 1 times without a session, 1 times with one",
        "the background profiler is on",
        id.as_str(),
    ] {
        assert!(said.contains(expected), "no {expected:?}: {said}");
    }
    assert_eq!(said.matches("of the stacks whole").count(), 2, "{said}");
    // Nothing was sent, and nothing of ours is left.
    let log = check.log();
    assert!(!log.contains("Uploading "), "{log}");
    assert!(!check.plugin().exists());
    assert!(!check.server().join("plugins/spark").exists());
    assert!(!check.lab.root().join("tools/check/__pycache__").exists());
}

#[test]
fn worlds_other_plugins_and_running_servers_are_not_touched_unasked() {
    let _beside = beside();
    let check = Check::new();
    let world = check.server().join("worlds/Bedrock level");
    std::fs::create_dir_all(&world).unwrap();
    let refused = check.run(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("Bedrock level"), "{}", said(&refused));
    assert!(!check.plugin().exists(), "something was installed");
    assert_eq!(check.log(), "", "the server was started");

    std::fs::create_dir_all(check.plugin().parent().unwrap()).unwrap();
    std::fs::write(check.plugin(), "another").unwrap();
    let refused = check.run(&["--yes"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("is another file"), "{}", said(&refused));
    assert_eq!(std::fs::read(check.plugin()).unwrap(), b"another");

    // With the word for it, the other one makes way and comes back. The profile goes where the settings say.
    let bytebin = Bytebin::start(Mode::Ok);
    check.settings(&format!(
        "bytebinUrl = \"{}\"\nbackgroundProfiler = false\n",
        bytebin.url
    ));
    let output = check.run(&["--yes", "--replace", "--remove", "--upload"]);
    let said_then = assert_passed(&check, &output);
    assert!(said_then.contains("only idle"), "{said_then}");
    assert_eq!(bytebin.requests().len(), 1, "{said_then}");
    assert!(!said_then.contains("the background profiler is on"), "{said_then}");
    assert_eq!(std::fs::read(check.plugin()).unwrap(), b"another");
    assert!(
        check.server().join("plugins/spark/config.toml").exists(),
        "settings of before are gone"
    );
    assert!(world.exists());

    let mut running = check
        .lab
        .server(&check.python)
        .folder(check.server())
        .without_profiler();
    running = running.arg("--no-python");
    std::fs::remove_file(check.plugin()).unwrap();
    let server = running.start_ready().unwrap();
    let refused = check.run(&["--yes"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("a server runs in"), "{}", said(&refused));
    server.stop_cleanly().unwrap();
}

#[test]
fn a_server_that_does_not_pass_is_said_not_to() {
    let _beside = beside();
    let check = Check::new();
    // Profiles cannot be written.
    check.settings(NOBODY_LISTENS);
    std::fs::write(check.server().join("plugins/spark/profiles"), "in the way").unwrap();
    let output = check.run(&[]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no profile was saved"), "{text}");
    assert!(text.contains("\nFAILED: "), "{text}");
    // It was stopped as its owner would.
    assert!(check.log().contains("[stand-in] stopped"), "{}", check.log());
}
