//! Every line of the table, typed into the console of one server, with the answer it gives there.

use super::command_lines::{GOOD, OTHER};
use super::{ANSWER, RUNNING, beside, lab};
use harness::{Linked, Server};

/// Types a line and gives what the profiler answers before the next tick is over, without the time that the server puts before it.
fn typed(server: &mut Server, line: &str) -> String {
    let mark = server.mark();
    server.command(&format!("spark {line}")).unwrap();
    server.ask("!ticks 1", "!ticks done").unwrap();
    let said = server.output_since(mark);
    let mut answer = Vec::new();
    let mut place = None;
    for line in said {
        // Further lines of an answer are set in, and stand at the same place.
        place = line.find("[⚡]").or(place);
        let rest = place.and_then(|place| line.get(place..));
        answer.extend(
            rest.filter(|rest| rest.starts_with("[⚡]") || rest.starts_with("    "))
                .map(str::to_owned),
        );
    }
    answer.join("\n")
}

/// What a console cannot pass on as it is: it ends a line at a line break, and ends a text at a zero.
fn can_be_typed(line: &str) -> bool {
    !line.contains(['\n', '\0'])
}

#[test]
fn the_version_names_the_build_whose_file_is_loaded() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).arg("--no-python").start_ready().unwrap();
    let id = Linked::read(&lab.plugin().unwrap()).unwrap().build_id.unwrap();
    // `./dev release --test` says what the file was built from; others are built from nothing that has a name.
    let commit = std::env::var("SPARK_PLUGIN_COMMIT");
    let origin = commit.map_or_else(|_| "not a release".to_owned(), |commit| format!("commit {commit}"));
    for line in ["version", "--version"] {
        let said = typed(&mut server, line);
        assert_eq!(
            said,
            format!("[⚡] spark {}, {origin}, build {id}", env!("CARGO_PKG_VERSION"))
        );
    }
    server.stop_cleanly().unwrap();
}

#[test]
fn all_lines_of_the_table_are_answered_on_the_console() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).arg("--no-python").start_ready().unwrap();
    let mut count = 0;
    for (line, expected) in OTHER.iter().filter(|(line, _)| can_be_typed(line)) {
        assert_eq!(typed(&mut server, line), *expected, "{line:?}");
        count += 1;
    }
    for (line, asked, expected) in GOOD.iter().filter(|(line, ..)| can_be_typed(line)) {
        let starts = asked.starts_with("start");
        let reports = asked.starts_with("report");
        if !starts && !reports && !asked.is_empty() {
            server.ask("spark profiler start", RUNNING).unwrap();
        }
        let mark = server.mark();
        let answer = typed(&mut server, line);
        let first = answer.lines().next().unwrap_or_default();
        assert_eq!(first, *expected, "{line:?}");
        if starts {
            server.wait_for_since(mark, RUNNING, ANSWER).unwrap();
            let cancelled = server.mark();
            server.command("spark profiler cancel").unwrap();
            server.wait_for_since(cancelled, "nothing was saved", ANSWER).unwrap();
        } else if asked.starts_with("stop") {
            server
                .wait_for_since(mark, "Saved plugins/spark/profiles/", ANSWER)
                .unwrap();
        } else if reports {
            // Nobody takes uploads here.
            server
                .wait_for_since(mark, ".sparkhealth. Drop the file onto ", ANSWER)
                .unwrap();
        } else if !asked.is_empty() {
            server.wait_for_since(mark, "nothing was saved", ANSWER).unwrap();
        }
        server.ask("!ticks 2", "!ticks done").unwrap();
        count += 1;
    }
    println!("{count} lines typed");
    assert!(count >= 120, "{count}");
    server.stop_cleanly().unwrap();
}
