//! The background profiler and the commands, in all orders; and what is told when it cannot run.

#[path = "ticking/mod.rs"]
mod ticking;

use endstone_spark::command::{Audience, answer_refusal};
use endstone_spark::native::{self, SamplerOptions, ThreadSelection};
use endstone_spark::session::{Control, Destination, Ended, Notice, Refusal, Requester};
use endstone_spark::shadow::ShadowTable;
use endstone_spark::sys::thread;
use ticking::Server;

/// Nobody listens there: nothing is uploaded.
const NOWHERE: &str = "http://127.0.0.1:9";

fn until_in_background(server: &mut Server) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while server.service.info().background.is_none() {
        server.tick();
        assert!(std::time::Instant::now() < end, "{:#?}", server.said);
    }
}

#[test]
fn commands_in_any_order_say_what_is_so() {
    let mut server = Server::with_background(NOWHERE);
    until_in_background(&mut server);
    let mut files = 0;
    for order in 0..4_u32.pow(3) {
        let mut runs = false;
        let steps = [0, 1, 2].map(|place| order / 4_u32.pow(place) % 4);
        for step in steps {
            let info = server.service.info();
            assert_eq!(
                (info.running.is_some(), info.background.is_some()),
                (runs, !runs),
                "{steps:?}"
            );
            match step {
                0 if runs => assert!(matches!(server.try_start(), Err(Refusal::AlreadyRunning { .. }))),
                0 => {
                    server.start();
                    runs = true;
                }
                1 => {
                    let expected = if runs { Ended::Session } else { Ended::Nothing };
                    assert_eq!(server.stop(Destination::File), Ok(expected), "{steps:?}");
                    server.until(|notice| matches!(notice, Notice::Saved { .. }));
                    files += 1;
                    runs = false;
                }
                2 if runs => {
                    assert_eq!(server.service.cancel(&Requester::Console), Ok(Ended::Session));
                    server.until(|notice| matches!(notice, Notice::Cancelled));
                    runs = false;
                }
                2 => assert_eq!(server.service.cancel(&Requester::Console), Err(Refusal::OnlyBackground)),
                _ => drop(server.tick()),
            }
            if !runs {
                server.settle();
                until_in_background(&mut server);
            }
        }
        if runs {
            server.service.cancel(&Requester::Console).unwrap();
            server.until(|notice| matches!(notice, Notice::Cancelled));
            until_in_background(&mut server);
        }
    }
    assert_eq!(server.files().len(), files);
    assert!(server.service.shutdown());
    assert_eq!(server.files().len(), files, "what was in the background is not saved");
    let refused = answer_refusal(&Refusal::OnlyBackground).render(Audience::Console);
    assert!(refused.contains("backgroundProfiler = false"), "{refused}");
}

#[test]
fn a_start_that_fails_is_told_once_and_sessions_work_all_the_same() {
    let mut server = Server::prepared(NOWHERE, |settings| settings.background_profiler = true);
    let rival = SamplerOptions {
        interval_nanos: 10_000_000,
        threads: ThreadSelection::Tids(vec![thread::current_tid()]),
        ignore_sleeping: false,
    };
    let (sampler, source) = native::start(rival, ShadowTable::global()).unwrap();
    server.until(|notice| matches!(notice, Notice::BackgroundStopped(_)));
    drop((sampler, source));
    for _ in 0..2 {
        server.start();
        server.stop(Destination::File).unwrap();
        server.until(|notice| matches!(notice, Notice::Saved { .. }));
        server.settle();
        assert!(server.service.info().background.is_none());
    }
    let told = server
        .said
        .iter()
        .filter(|line| line.contains("The background profiler is off"));
    assert_eq!(told.count(), 1, "{:#?}", server.said);
    assert_eq!(server.service.cancel(&Requester::Console), Err(Refusal::NotRunning));
    assert!(server.service.shutdown());
}
