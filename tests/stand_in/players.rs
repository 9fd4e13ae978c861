//! A player and a command block give commands on Endstone's own path: its permission check, its usages, its list of players.

use super::{ANSWER, beside, lab};

const SIGN: &str = "§8[§e§l⚡§r§8] ";

#[test]
fn a_player_is_answered_in_colour_as_far_as_the_permissions_go_and_a_command_block_is_refused() {
    let _beside = beside();
    let lab = lab();
    let python = lab.default_python().unwrap();
    let mut server = lab.server(&python).arg("--no-python").start_ready().unwrap();

    // Nothing is for everybody: Endstone itself refuses.
    server.command("!join minecraft.kick").unwrap();
    let mark = server.command("!as player spark profiler start").unwrap();
    server.wait_for_since(mark, "player: ", ANSWER).unwrap();
    server.ask("!ticks 2", "!ticks done").unwrap();
    let said = server.output_since(mark).join("\n");
    assert!(!said.contains("Starting the profiler"), "{said}");
    server
        .ask("spark profiler info", "The profiler is not running")
        .unwrap();

    // The list, but not the profiler.
    server.command("!join spark.activity").unwrap();
    let listed = server.ask("!as player spark activity", "player: ").unwrap();
    assert!(
        listed.contains(&format!("{SIGN}§7No profile has been made yet.")),
        "{listed}"
    );
    let refused = server.ask("!as player spark profiler start", "player: ").unwrap();
    assert!(
        refused.contains(&format!("{SIGN}§cThis needs the permission spark.profiler")),
        "{refused}"
    );

    // The profiler; what takes its time is answered to the player, too.
    server.command("!join spark.profiler").unwrap();
    let mark = server.command("!as player spark profiler start").unwrap();
    let running = server.wait_for_since(mark, "The profiler is running", ANSWER).unwrap();
    assert!(
        running.contains(&format!("player: {SIGN}§aThe profiler is running")),
        "{running}"
    );
    let again = server.ask("spark profiler start", "running already").unwrap();
    assert!(again.contains("Steve started it"), "{again}");
    let blocked = server.ask("!as block spark profiler stop", "block: ").unwrap();
    assert!(
        blocked.contains("Only players and the console can use spark."),
        "{blocked}"
    );

    // Who has left is not waited for.
    server.command("!leave").unwrap();
    let mark = server.command("!as player spark profiler stop --save-to-file").unwrap();
    let saved = server.wait_for_since(mark, "Saved ", ANSWER).unwrap();
    assert!(!saved.contains("player: "), "{saved}");
    let creator = server
        .last_profile()
        .unwrap()
        .metadata()
        .unwrap()
        .creator
        .clone()
        .unwrap();
    assert_eq!(creator.name, "Steve");
    server.stop_cleanly().unwrap();
}
