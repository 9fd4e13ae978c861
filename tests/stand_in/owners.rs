//! Whose the functions in a profile are: Endstone loads real wheels, and the profile knows plugins, what they call, and their versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::Profile;

use super::{ANSWER, SAVED, assert_sound, beside, lab, start, stop};

/// A plugin whose entry point is written with a dash, that works in a dependency of Endstone's, in the standard library, and in code made by `exec`.
fn caravan(folder: &Path) -> PathBuf {
    let source = folder.join("source");
    let package = source.join("endstone_long_caravan");
    fs::create_dir_all(&package).unwrap();
    let project = "[project]\nname = \"endstone-long-caravan\"\nversion = \"2.7.1\"\ndescription = \"Goes a long way\"\n\
        authors = [{ name = \"Ann\", email = \"ann@example.org\" }]\n\
        [project.entry-points.\"endstone\"]\nlong-caravan = \"endstone_long_caravan:Caravan\"\n";
    fs::write(source.join("pyproject.toml"), project).unwrap();
    fs::write(
        package.join("__init__.py"),
        "import json\n\
         import time\n\
         import importlib_metadata\n\
         from endstone.plugin import Plugin\n\n\
         MADE = {\"__name__\": __name__}\n\
         exec(\"def made(n):\\n    return sum(range(n))\\n\", MADE)\n\n\n\
         class Caravan(Plugin):\n\
         \x20   api_version = \"0.11\"\n\n\
         \x20   def on_enable(self):\n\
         \x20       self.server.scheduler.run_task(self, self.travel, delay=1, period=1)\n\n\
         \x20   def travel(self):\n\
         \x20       end = time.perf_counter() + 0.012\n\
         \x20       while time.perf_counter() < end:\n\
         \x20           self.read()\n\
         \x20           self.ask()\n\
         \x20           MADE[\"made\"](5000)\n\n\
         \x20   def read(self):\n\
         \x20       return json.loads(json.dumps(list(range(200))))\n\n\
         \x20   def ask(self):\n\
         \x20       return importlib_metadata.version(\"endstone\")\n",
    )
    .unwrap();
    harness::build_plugin(&source, folder).unwrap()
}

fn assert_told_apart(profile: &Profile) {
    assert_sound(profile);
    let stacks = profile.stacks();
    let plugin = "[Python] endstone_long_caravan";
    for chain in [
        [plugin, "[Python] json."],
        [plugin, "[Python] importlib_metadata"],
        ["[Python] endstone_market.", "[Python] json."],
    ] {
        assert!(
            stacks.iter().any(|stack| stack.has_in_order(&chain)),
            "nothing stands below its plugin: {chain:?}"
        );
    }
    assert!(stacks.iter().any(|stack| stack.has("endstone_long_caravan.made")));
    let data = profile.data();
    let owners: Vec<_> = data
        .class_sources
        .iter()
        .filter(|(class, _)| class.starts_with("[Python] "))
        .collect();
    for (class, owner) in &owners {
        let expected = match class.trim_start_matches("[Python] ").split('.').next().unwrap() {
            "endstone_long_caravan" => "long_caravan",
            "endstone_market" => "market",
            "endstone_quests" => "quests",
            _ => panic!("{class} is no plugin's, and is said to be {owner}'s"),
        };
        assert_eq!(*owner, expected, "{class}");
    }
    assert!(owners.iter().any(|(_, owner)| *owner == "long_caravan"), "{owners:?}");
    let sources = &profile.metadata().unwrap().sources;
    assert_eq!(
        (
            sources["long_caravan"].name.as_str(),
            sources["long_caravan"].version.as_str()
        ),
        ("long_caravan", "2.7.1")
    );
    let codes = &profile.extra("Python attribution").unwrap()["code objects"];
    // No dependency: what Endstone needs lies in a folder here that is not called site-packages, and counts as unknown (`python_names` has dependencies).
    for category in ["plugin", "endstone", "standard library"] {
        assert!(codes[category].as_u64().unwrap() > 0, "{category}: {codes}");
    }
}

#[test]
fn plugins_and_what_they_call_are_told_apart_and_keep_their_names_when_loaded_again() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut server = lab
        .server(&python)
        .samples()
        .unwrap()
        .plugin(caravan(folder.path()))
        .start_ready()
        .unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(4)).unwrap();
    assert_told_apart(&stop(&mut server));

    start(&mut server, "");
    let mark = server.command("!reload-plugins").unwrap();
    server.wait_for_since(mark, "!reload-plugins done", ANSWER).unwrap();
    server.wait_for_since(mark, SAVED, ANSWER).unwrap();
    server.ask("!ticks 3", "!ticks done").unwrap();
    start(&mut server, "");
    server.run_for(Duration::from_secs(4)).unwrap();
    assert_told_apart(&stop(&mut server));
    server.stop_cleanly().unwrap();
}
