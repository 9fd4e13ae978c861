//! Slot numbers, mangled names and passing, against the debug information.

use endstone_spark::endstone::abi::{CommandSenderSlots, ServerSlots, VTABLES, VtableSlots};

use super::released::Released;

/// What is wrong with a table; empty when nothing is.
fn differences(table: &VtableSlots) -> Vec<String> {
    let mut wrong = Vec::new();
    for class in Released::get().class(table.class) {
        for slot in table.slots {
            let Some(method) = class.methods.get(&(slot.index as u64)) else {
                wrong.push(format!("{}: slot {} is not declared", table.class, slot.index));
                continue;
            };
            if method.symbol != slot.symbol {
                wrong.push(format!(
                    "{}: slot {} is {}, not {}",
                    table.class, slot.index, method.symbol, slot.symbol
                ));
            }
            if method.arguments != slot.arguments || method.result != slot.result {
                wrong.push(format!(
                    "{}: {} takes {:?} and returns {:?}, not {:?} and {:?}",
                    table.class, slot.symbol, method.arguments, method.result, slot.arguments, slot.result
                ));
            }
        }
    }
    wrong
}

#[test]
fn every_slot_is_where_the_released_headers_put_it() {
    let wrong: Vec<String> = VTABLES.iter().flat_map(differences).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_number_a_wrong_name_and_a_wrong_passing_are_each_found() {
    let with = |change: fn(&mut endstone_spark::endstone::abi::Slot)| {
        let mut slot = ServerSlots::GET_VERSION;
        change(&mut slot);
        differences(&VtableSlots {
            class: "endstone::Server",
            slots: std::slice::from_ref(Box::leak(Box::new(slot))),
        })
    };
    assert!(with(|_| {}).is_empty());
    assert_eq!(with(|slot| slot.index = 4).len(), 1);
    assert_eq!(with(|slot| slot.symbol = CommandSenderSlots::GET_NAME.symbol).len(), 1);
    assert_eq!(
        with(|slot| slot.result = endstone_spark::endstone::abi::Pass::Registers(8)).len(),
        1
    );
    assert_eq!(with(|slot| slot.index = 400).len(), 1);
}
