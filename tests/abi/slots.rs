//! Slot numbers, mangled names and passing, against the debug information.

use endstone_spark::endstone::abi::{CommandSenderSlots, Pass, ServerSlots, Slot, VTABLES, VtableSlots};
use harness::abi;

use super::released::Released;

#[test]
fn every_slot_is_where_the_released_headers_put_it() {
    let wrong: Vec<String> = VTABLES
        .iter()
        .flat_map(|table| abi::slots(Released::types(), table).unwrap())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_number_a_wrong_name_and_a_wrong_passing_are_each_found() {
    let with = |change: fn(&mut Slot)| {
        let mut slot = ServerSlots::GET_VERSION;
        change(&mut slot);
        let table = VtableSlots {
            class: "endstone::Server",
            slots: std::slice::from_ref(Box::leak(Box::new(slot))),
        };
        abi::slots(Released::types(), &table).unwrap().join("\n")
    };
    assert_eq!(with(|_| {}), "");
    assert!(
        with(|slot| slot.index = 4).contains("is in slot 3, not 4"),
        "{}",
        with(|slot| slot.index = 4)
    );
    assert!(with(|slot| slot.index = 400).contains("is in slot 3, not 400"));
    assert!(with(|slot| slot.symbol = CommandSenderSlots::GET_NAME.symbol).contains("is gone; slot 3 is"));
    assert!(with(|slot| slot.result = Pass::Registers(8)).contains("and returns"));
}
