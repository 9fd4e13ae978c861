//! A disk that takes its time to open a file: commands are answered and ticks go on meanwhile, and nothing is lost.
//!
//! The plugin is a build that stays where a file says so (`src/sys/fault.rs`), here wherever it opens a file of its own.

use harness::{Server, journal_files};

use super::faults::{Faults, faulty};
use super::{ANSWER, RUNNING, SAVED, assert_sound, beside};

/// What the server thread does is done although the disk is not.
fn goes_on(server: &mut Server) {
    server.ask("!ticks 20", "!ticks done").unwrap();
    server.ask("spark tps", "TPS over").unwrap();
    server
        .ask("spark activity", "No profile has been made yet. Begin with ")
        .unwrap();
}

#[test]
fn while_the_disk_does_not_open_a_file_the_server_goes_on_and_nothing_is_lost() {
    let _beside = beside();
    let faults = Faults::new();
    let mut server = faulty(&faults);

    let begin = server.mark();
    faults.hold("disk");
    server.command("spark profiler start").unwrap();
    goes_on(&mut server);
    assert!(journal_files(server.dir()).unwrap().is_empty(), "it waits for the disk");
    faults.release("disk");
    server.wait_for_since(begin, RUNNING, ANSWER).unwrap();
    server.ask("!ticks 20", "!ticks done").unwrap();
    assert_eq!(journal_files(server.dir()).unwrap().len(), 1);

    let end = server.mark();
    faults.hold("disk");
    server.command("spark profiler stop --save-to-file").unwrap();
    goes_on(&mut server);
    assert!(server.profile_files().unwrap().is_empty());
    faults.release("disk");
    server.wait_for_since(end, SAVED, ANSWER).unwrap();
    assert_sound(&server.last_profile().unwrap());
    server.stop_cleanly().unwrap();
}
