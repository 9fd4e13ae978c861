//! Slots once more, against the vtables that the released runtime emits.

use std::borrow::Cow;

use cpp_demangle::Symbol;
use endstone_spark::endstone::abi::{
    ActorSlots, ChunkSlots, CommandSenderSlots, CommandSlots, ControlBlockSlots, DimensionSlots, LevelSlots,
    LoggerSlots, OfflinePlayerSlots, PermissibleSlots, Player, PlayerSlots, PluginCommandSlots, PluginManagerSlots,
    SchedulerSlots, ServerSlots, TaskSlots, VtableSlots,
};

use super::released::Released;

/// The function's name and parameters without its class: the implementing class has another name.
fn signature(symbol: &str) -> String {
    let plain = symbol
        .strip_prefix("_ZThn8_")
        .map_or(Cow::Borrowed(symbol), |rest| Cow::Owned(format!("_Z{rest}")));
    let text = Symbol::new(plain.as_bytes()).unwrap().demangle().unwrap();
    let name_end = text.find('(').unwrap();
    let name_start = text[..name_end].rfind("::").map_or(0, |at| at + 2);
    text[name_start..].to_owned()
}

fn check(table: &VtableSlots, vtable: &str, offset: usize) {
    let emitted = Released::get().runtime.slots(vtable, offset as u64);
    for slot in table.slots {
        let names = &emitted[slot.index];
        let expected = signature(slot.symbol);
        assert!(
            names.iter().any(|name| signature(name) == expected),
            "slot {} of {vtable} is {names:?}, not {expected}",
            slot.index
        );
    }
}

#[test]
fn the_runtime_emits_its_vtables_in_the_same_order() {
    for (table, vtable) in [
        (ServerSlots::TABLE, "_ZTVN8endstone4core14EndstoneServerE"),
        (PluginManagerSlots::TABLE, "_ZTVN8endstone4core21EndstonePluginManagerE"),
        (SchedulerSlots::TABLE, "_ZTVN8endstone4core17EndstoneSchedulerE"),
        (TaskSlots::TABLE, "_ZTVN8endstone4core12EndstoneTaskE"),
        (LoggerSlots::TABLE, "_ZTVN8endstone4core13SpdLogAdapterE"),
        (
            PermissibleSlots::TABLE,
            "_ZTVN8endstone4core28EndstoneConsoleCommandSenderE",
        ),
        (
            CommandSenderSlots::TABLE,
            "_ZTVN8endstone4core28EndstoneConsoleCommandSenderE",
        ),
        (PermissibleSlots::TABLE, "_ZTVN8endstone4core14EndstonePlayerE"),
        (CommandSenderSlots::TABLE, "_ZTVN8endstone4core14EndstonePlayerE"),
        (ActorSlots::TABLE, "_ZTVN8endstone4core14EndstonePlayerE"),
        (PlayerSlots::TABLE, "_ZTVN8endstone4core14EndstonePlayerE"),
        (LevelSlots::TABLE, "_ZTVN8endstone4core13EndstoneLevelE"),
        (DimensionSlots::TABLE, "_ZTVN8endstone4core17EndstoneDimensionE"),
        (ChunkSlots::TABLE, "_ZTVN8endstone4core13EndstoneChunkE"),
        (CommandSlots::TABLE, "_ZTVN8endstone7CommandE"),
        (PluginCommandSlots::TABLE, "_ZTVN8endstone13PluginCommandE"),
    ] {
        check(&table, vtable, 0);
    }
    check(
        &OfflinePlayerSlots::TABLE,
        "_ZTVN8endstone4core14EndstonePlayerE",
        Player::OFFLINE_PLAYER_OFFSET,
    );
}

#[test]
fn chunks_are_deleted_by_the_second_of_their_two_destructors() {
    let released = Released::get();
    for class in Released::types().class("endstone::Chunk").unwrap() {
        let declared = class.methods.get(&0).expect("a virtual destructor");
        assert!(
            declared.symbol.is_empty() && declared.arguments.is_empty(),
            "{declared:?}"
        );
        assert!(!class.methods.contains_key(&(ChunkSlots::DELETE.index as u64)));
    }
    let emitted = released.runtime.slots("_ZTVN8endstone4core13EndstoneChunkE", 0);
    let names = &emitted[ChunkSlots::DELETE.index];
    assert!(
        names.iter().any(|name| name.ends_with("EndstoneChunkD0Ev")),
        "{names:?}"
    );
}

#[test]
fn control_blocks_of_shared_pointers_have_their_two_functions_in_these_slots() {
    let runtime = &Released::get().runtime;
    let blocks: Vec<&str> = runtime
        .tables()
        .filter(|name| name.starts_with("_ZTVNSt3__120__shared_ptr_emplace"))
        .collect();
    assert!(blocks.iter().any(|name| name.contains("EndstoneTask")), "{blocks:?}");
    for block in blocks {
        let slots = runtime.slots(block, 0);
        for slot in ControlBlockSlots::TABLE.slots {
            let end = format!("{}{}Ev", slot.symbol.len(), slot.symbol);
            assert!(
                slots[slot.index].iter().any(|name| name.ends_with(&end)),
                "slot {} of {block} is {:?}",
                slot.index,
                slots[slot.index]
            );
        }
    }
}
