//! Journals of several sessions in one folder.

use std::sync::Arc;

use endstone_spark::journal::{Journal, RecoveryFolder, TickFeed};

use super::support::{Load, flush, head, modules, read_all};

#[test]
fn only_journals_of_sessions_that_are_over_are_found() {
    let root = tempfile::tempdir().unwrap();
    let recovery = Arc::new(RecoveryFolder::open(root.path()).unwrap());
    let run = || {
        let (journal, mut feed) = Journal::begin(&recovery, head(), TickFeed::default()).unwrap();
        Load::new(3, 4, 4).give(&mut feed, 10);
        flush(&mut feed, &modules(3));
        (journal, feed)
    };
    let first = run();
    assert!(recovery.found().is_empty());
    drop((first.1, first.0));
    let second = run();
    let found = recovery.found();
    assert_eq!(found.len(), 1);
    assert_eq!(read_all(&recovery, found[0].session).samples, 10);
    drop((second.1, second.0));
    assert_eq!(recovery.found().len(), 2, "two sessions of one millisecond are two");
}
