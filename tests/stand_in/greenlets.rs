//! A thread that runs greenlets is shown natively, and the owner is told.

use std::time::Duration;

use super::{assert_sound, beside, lab, start, stop};

#[test]
fn a_thread_that_runs_greenlets_is_named_and_the_next_session_follows_it_again() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let package = lab.package(python.version, "greenlet==3.5.6").unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(2)).unwrap();
    let import = format!("__import__('sys').path.append({:?})", package.to_str().unwrap());
    server.ask(&format!("!python {import}"), "!python").unwrap();
    let run = "(lambda g: g.greenlet(lambda: 6 * 7).switch())(__import__('greenlet'))";
    let answer = server.ask(&format!("!python {run}"), "!python").unwrap();
    assert!(answer.contains("42"), "{answer}");
    let info = server.ask("spark profiler info", "swaps stacks").unwrap();
    assert!(
        info.contains("1 thread swaps stacks (greenlets), native frames only: MC_SERVER."),
        "{info}"
    );
    server.run_for(Duration::from_secs(2)).unwrap();
    let profile = stop(&mut server);
    assert_sound(&profile);
    let said = &profile.extra("Python attribution").unwrap()["threads that swap stacks, shown natively"];
    assert_eq!(said["number"], 1, "{said}");
    assert_eq!(said["first of them"][0], "MC_SERVER", "{said}");
    let before = profile.share_of(|stack| stack.has("[Python] endstone_market."));

    start(&mut server, "");
    server.run_for(Duration::from_secs(3)).unwrap();
    let profile = stop(&mut server);
    server.stop_cleanly().unwrap();
    assert_sound(&profile);
    let after = profile.share_of(|stack| stack.has("[Python] endstone_market."));
    assert!(
        after > 0.05 && before < after * 0.9,
        "{before} with greenlets in the second half, {after} without"
    );
}
