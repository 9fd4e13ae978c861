//! Which threads are profiled: all, by name, by pattern; and what the profile says of it.

use std::collections::HashSet;
use std::time::Duration;

use super::{alone, assert_sound, figure, lab, profile_for};
use endstone_spark::export::pb::sampler_metadata::thread_dumper::Type;

#[test]
fn threads_are_chosen_by_name_and_pattern() {
    let _alone = alone();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).samples().unwrap().start_ready().unwrap();
    let time = Duration::from_secs(3);
    let dumper = |profile: &harness::Profile| profile.metadata().unwrap().thread_dumper.clone().unwrap();

    let all = profile_for(&mut server, "--thread *", time);
    assert_sound(&all);
    assert_eq!(dumper(&all).r#type, i32::from(Type::All));
    let names = all.threads();
    assert!(names.len() > 1, "{names:?}");
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("spark-")), "{names:?}");
    assert!(figure(&all, "Sampling", "threads at the end") > 1.0);

    let server_thread = names[0].to_owned();
    let exact = profile_for(&mut server, &format!("--thread {}", server_thread.to_lowercase()), time);
    assert_sound(&exact);
    assert_eq!(dumper(&exact).r#type, i32::from(Type::Specific));
    assert!(exact.threads()[0].starts_with(&server_thread), "{:?}", exact.threads());
    assert!(exact.total_millis() > 2_000.0);

    let start = &server_thread[..4];
    let pattern = profile_for(
        &mut server,
        &format!("--thread {start}.* --regex --ignore-sleeping"),
        time,
    );
    assert_sound(&pattern);
    assert_eq!(dumper(&pattern).r#type, i32::from(Type::Regex));
    assert_eq!(dumper(&pattern).patterns, [format!("{start}.*")]);
    assert!(figure(&pattern, "Sampling", "samples left out because asleep") > 10.0);
    let asleep = pattern.share_of(|stack| stack.has("ServerInstance::_sleepUntilNextTick"));
    assert!(asleep < 0.05, "{asleep}");
    server.stop_cleanly().unwrap();
}
