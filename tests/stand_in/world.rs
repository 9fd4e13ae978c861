//! What profiles and health reports say of the world and the server, with a world whose objects are laid out by the runtime's own debug information.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use endstone_spark::export::pb::{WorldStatistics, world_statistics::World};
use harness::{Health, Server, ServerBuilder};

use super::bytebin::{Bytebin, Mode, Request};
use super::world_plan::{DIMENSIONS, WorldPlan};
use super::{ANSWER, SAVED, assert_sound, beside, lab, profile_for, start};

/// Enough for several shares of entities, more than one region, and every dimension.
const PLAN: WorldPlan = WorldPlan {
    chunks: 200,
    entities: 600,
    players: 3,
};

/// A server with this world.
fn with_world(builder: ServerBuilder<'_>, plan: WorldPlan) -> ServerBuilder<'_> {
    let WorldPlan {
        chunks,
        entities,
        players,
    } = plan;
    let spec = format!("chunks={chunks},entities={entities},players={players}");
    builder.arg("--world").arg(spec)
}

fn start_with_world(plan: WorldPlan) -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    with_world(lab.server(&python).arg("--no-python"), plan)
        .start_ready()
        .unwrap()
}

/// Entities of a dimension by chunk and kind, as the plan has them.
fn planned(plan: WorldPlan, dimension: usize) -> BTreeMap<(i32, i32), BTreeMap<String, i32>> {
    let mut chunks: BTreeMap<(i32, i32), BTreeMap<String, i32>> = BTreeMap::new();
    let mut add = |kind: &str, place| {
        let kinds = chunks.entry(place).or_default();
        *kinds.entry(kind.to_owned()).or_default() += 1;
    };
    for (kind, place) in plan.entities(dimension) {
        add(kind, place);
    }
    if dimension == 0 {
        (0..plan.players).for_each(|_| add("minecraft:player", (-2, -2)));
    }
    chunks
}

fn found(world: &World) -> BTreeMap<(i32, i32), BTreeMap<String, i32>> {
    let chunks = world.regions.iter().flat_map(|region| &region.chunks);
    chunks
        .map(|chunk| ((chunk.x, chunk.z), chunk.entity_counts.clone()))
        .collect()
}

fn assert_is_planned(world: &WorldStatistics, plan: WorldPlan) {
    let names: Vec<&str> = world.worlds.iter().map(|world| world.name.as_str()).collect();
    assert_eq!(names, DIMENSIONS);
    let mut kinds: BTreeMap<String, i32> = BTreeMap::new();
    for (number, dimension) in world.worlds.iter().enumerate() {
        let expected = planned(plan, number);
        assert_eq!(found(dimension), expected, "{}", dimension.name);
        assert_eq!(dimension.regions.len(), 2, "two squares that do not touch");
        for (kind, count) in expected.values().flatten() {
            *kinds.entry(kind.clone()).or_default() += count;
        }
    }
    assert_eq!(world.entity_counts, kinds);
    assert_eq!(world.total_entities, kinds.values().sum::<i32>());
}

/// `chunks made N, deleted N; calls N`.
fn assert_all_chunks_are_given_back(server: &mut Server) {
    let figures = server.ask("!world", "!world ").unwrap();
    let numbers: Vec<u64> = figures
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let [.., made, deleted, _calls] = numbers[..] else {
        panic!("{figures}")
    };
    assert!(made > 0 && made == deleted, "{figures}");
}

#[test]
fn a_profile_shows_the_world_and_every_chunk_is_given_back() {
    let _beside = beside();
    let mut server = start_with_world(PLAN);
    let profile = profile_for(&mut server, "", Duration::from_secs(2));
    assert_sound(&profile);
    let metadata = profile.metadata().unwrap();
    let platform = metadata.platform_statistics.as_ref().expect("whole statistics");
    assert_is_planned(platform.world.as_ref().unwrap(), PLAN);
    assert_eq!(platform.player_count, 3);
    let ping = platform.ping.as_ref().unwrap().last15m.unwrap();
    let planned_pings = [0, 1, 2].map(|player| WorldPlan::ping(player) as f64);
    assert_eq!([ping.min, ping.median, ping.max], planned_pings);
    let world = profile.extra("World").unwrap();
    assert_eq!(world["dimensions"]["Nether"]["chunks loaded"], 100, "{world}");
    assert!(!world.to_string().contains("not looked at"), "{world}");

    for window in profile.data().time_window_statistics.values() {
        assert_eq!((window.players, window.entities, window.chunks), (3, 1_053, 350));
    }
    assert_all_chunks_are_given_back(&mut server);
    server.stop_cleanly().unwrap();
}

#[test]
fn entities_beyond_the_limit_are_counted_but_not_named() {
    let _beside = beside();
    let plan = WorldPlan {
        chunks: 32,
        entities: 30_000,
        players: 0,
    };
    let mut server = start_with_world(plan);
    let profile = profile_for(&mut server, "", Duration::from_secs(1));
    assert_sound(&profile);
    let world = profile.extra("World").unwrap();
    let overworld = &world["dimensions"]["Overworld"];
    assert_eq!(overworld["entities"], 30_000, "{world}");
    let left_out = overworld["entities not looked at"].as_i64().unwrap();
    let metadata = profile.metadata().unwrap();
    let named = metadata.platform_statistics.as_ref().unwrap().world.as_ref().unwrap();
    let named = i64::from(named.worlds[0].total_entities);
    assert_eq!(named + left_out, 30_000);
    assert!((8_000..=12_000).contains(&named), "{named}");
    assert_all_chunks_are_given_back(&mut server);
    server.stop_cleanly().unwrap();
}

#[test]
fn without_a_world_nothing_is_said_of_it() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).arg("--no-python").start_ready().unwrap();
    let profile = profile_for(&mut server, "", Duration::from_secs(1));
    assert_sound(&profile);
    assert_eq!(profile.extra("World"), None);
    let platform = profile.metadata().unwrap().platform_statistics.clone().unwrap();
    assert!(platform.world.is_none() && platform.ping.is_none());
    server.stop_cleanly().unwrap();
}

/// The body of a request, unpacked and decoded.
fn report_in(request: &Request) -> Health {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&request.body[..])
        .read_to_end(&mut bytes)
        .unwrap();
    Health::decode(&bytes).unwrap()
}

fn reporting(bytebin: &Bytebin, samples: bool) -> Server {
    let lab = lab();
    let python = lab.default_python().unwrap();
    let settings = format!(
        "bytebinUrl = \"{}\"\nviewerUrl = \"http://localhost:3000\"\n",
        bytebin.url
    );
    let builder = lab.server(&python).file("plugins/spark/config.toml", settings).file(
        "server.properties",
        "online-mode=true\ndifficulty=easy\nlevel-seed=-4242\nlevel-name=Secret\n",
    );
    let builder = if samples {
        builder.samples().unwrap()
    } else {
        builder.arg("--no-python")
    };
    with_world(builder, PLAN).start_ready().unwrap()
}

#[test]
fn a_health_report_arrives_as_the_viewer_wants_it() {
    let _beside = beside();
    let bytebin = Bytebin::start(Mode::Ok);
    let mut server = reporting(&bytebin, true);
    // A session that runs is not disturbed, and goes on.
    start(&mut server, "");
    let mark = server.command("spark health --upload").unwrap();
    let link = server
        .wait_for_since(mark, "The health report is here", ANSWER)
        .unwrap();
    assert!(
        link.ends_with("The health report is here: http://localhost:3000/abcDEF123"),
        "{link}"
    );
    let [request] = &bytebin.requests()[..] else {
        panic!("one request")
    };
    let head = request.head.to_lowercase();
    assert!(head.contains("content-type: application/x-spark-health\r\n"), "{head}");
    assert!(head.contains("content-encoding: gzip\r\n"), "{head}");
    let report = report_in(request);
    let findings = report.check();
    assert!(findings.is_perfect(), "{findings}");
    let metadata = report.metadata();
    assert_eq!(metadata.creator.unwrap().name, "Console");
    assert!(metadata.sources.contains_key("market"), "{:?}", metadata.sources);
    let platform = metadata.platform_statistics.unwrap();
    assert_is_planned(platform.world.as_ref().unwrap(), PLAN);
    assert_eq!((platform.player_count, platform.online_mode), (3, 2));
    assert_eq!(
        metadata.server_configurations["server.properties"],
        r#"{"difficulty":"easy","online-mode":true}"#
    );
    let python: serde_json::Value = serde_json::from_str(&metadata.extra_platform_metadata["Python"]).unwrap();
    assert_eq!(python["implementation"], "CPython", "{python}");
    assert!(python["generations"][0]["collections"].is_number(), "{python}");
    assert!(python["generations"][0]["collections timed"].is_number(), "{python}");
    assert!(python.get("problem").is_none(), "{python}");
    let java = metadata.system_statistics.unwrap().java.unwrap();
    assert!(java.version.starts_with("CPython 3."), "{java:?}");

    server
        .ask("spark activity", "health report: http://localhost:3000/")
        .unwrap();
    assert_all_chunks_are_given_back(&mut server);
    server.ask("spark profiler stop --save-to-file", SAVED).unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn a_health_report_that_cannot_be_uploaded_is_saved() {
    let _beside = beside();
    let bytebin = Bytebin::start(Mode::Status(413));
    let mut server = reporting(&bytebin, false);
    let mark = server.command("spark health --upload").unwrap();
    let told = server
        .wait_for_since(mark, "The health report was not uploaded", ANSWER)
        .unwrap();
    assert!(told.contains("too large for 127.0.0.1"), "{told}");
    assert!(
        told.contains(".sparkhealth. Drop the file onto http://localhost:3000"),
        "{told}"
    );
    let folder = server.dir().join("plugins/spark/profiles");
    let files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    let report = Health::decode(&std::fs::read(file).unwrap()).unwrap();
    assert!(report.check().is_perfect(), "{}", report.check());
    assert_is_planned(
        report.metadata().platform_statistics.unwrap().world.as_ref().unwrap(),
        PLAN,
    );
    server
        .ask("spark activity", "health report: plugins/spark/profiles/")
        .unwrap();
    server.stop_cleanly().unwrap();
}

#[test]
fn a_server_that_is_stopped_does_not_wait_for_a_health_report() {
    let _beside = beside();
    let bytebin = Bytebin::start(Mode::Hang);
    let mut server = reporting(&bytebin, false);
    server.ask("spark health --upload", "Uploading ").unwrap();
    let again = server.ask("spark health --upload", "already").unwrap();
    assert!(again.contains("A health report is being made already."), "{again}");
    let output = server.stop_cleanly().unwrap();
    assert!(
        output
            .iter()
            .any(|line| line.contains("the plugin is being disabled") && line.contains(".sparkhealth")),
        "{output:#?}"
    );
}
