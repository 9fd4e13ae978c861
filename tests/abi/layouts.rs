//! Sizes, offsets and enumerators, against the debug information.

use std::collections::BTreeMap;

use endstone_spark::endstone::abi::{
    ClassLayout, CxxFunction, CxxHashMap, ENUMS, Foreign, LAYOUTS, Member, Message, Player, PluginBase,
};

use super::released::Released;

const STRING: &str = "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >";

fn differences(layout: &ClassLayout) -> Vec<String> {
    let mut wrong = members(layout.class, layout.members);
    for class in Released::get().class(layout.class) {
        if class.size != Some(layout.size as u64) {
            wrong.push(format!(
                "{} has {:?} bytes, not {}",
                layout.class, class.size, layout.size
            ));
        }
        if class.in_memory != Some(layout.in_memory) {
            wrong.push(format!(
                "{}: passed in memory: {:?}, not {}",
                layout.class, class.in_memory, layout.in_memory
            ));
        }
    }
    wrong
}

fn members(class: &str, members: &[Member]) -> Vec<String> {
    let mut wrong = Vec::new();
    for described in Released::get().class(class) {
        for member in members {
            let offset = described.members.get(member.name);
            if offset != Some(&(member.offset as u64)) {
                wrong.push(format!(
                    "{class}::{} is at {offset:?}, not {}",
                    member.name, member.offset
                ));
            }
        }
    }
    wrong
}

#[test]
fn every_layout_is_the_released_one() {
    let wrong: Vec<String> = LAYOUTS.iter().flat_map(differences).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_enumerator_has_the_released_number() {
    for ours in ENUMS {
        let expected: BTreeMap<String, i64> = ours
            .values
            .iter()
            .map(|(name, number)| ((*name).to_owned(), *number))
            .collect();
        for class in Released::get().class(ours.class) {
            assert_eq!(class.enumerators, expected, "{}", ours.class);
            assert_eq!(class.size, Some(ours.size as u64), "{}", ours.class);
        }
    }
}

#[test]
fn a_wrong_size_a_wrong_offset_and_a_wrong_passing_are_each_found() {
    let with = |change: fn(&mut ClassLayout)| {
        let mut layout = PluginBase::LAYOUT;
        change(&mut layout);
        !differences(&layout).is_empty()
    };
    assert!(!with(|_| {}));
    assert!(with(|layout| layout.size += 8));
    assert!(with(|layout| layout.in_memory = false));
    assert!(with(|layout| layout.members = &[Member {
        name: "server_",
        offset: 16
    }]));
    assert!(with(|layout| layout.members = &[Member {
        name: "renamed_",
        offset: 16
    }]));
}

#[test]
fn the_parts_of_a_string_are_where_they_are_read() {
    let at = |name, offset| Member { name, offset };
    let long = [at("__size_", 8), at("__data_", 16)];
    assert_eq!(members(&format!("{STRING}::__long"), &long), [""; 0]);
    assert_eq!(members(&format!("{STRING}::__short"), &[at("__data_", 1)]), [""; 0]);
}

#[test]
fn the_parts_of_maps_functions_and_messages_are_where_they_are_read() {
    let table = Released::get().class_like(
        &format!("std::__1::__hash_table<std::__1::__hash_value_type<{STRING}, bool>"),
        "bool> > >",
    );
    assert_eq!(members(&table, CxxHashMap::TABLE_MEMBERS), [""; 0]);
    assert_eq!(
        members(
            "std::__1::__function::__value_func<void ()>",
            CxxFunction::VALUE_FUNC_MEMBERS
        ),
        [""; 0]
    );
    let variant = Released::get().class_like(
        "std::__1::__variant_detail::__base<",
        &format!("{STRING}, endstone::Translatable>"),
    );
    assert_eq!(members(&variant, Message::BASE_MEMBERS), [""; 0]);
}

#[test]
fn base_classes_are_where_pointers_are_converted() {
    let base = |class: &str, base: &str| -> Vec<Option<u64>> {
        Released::get()
            .class(class)
            .iter()
            .map(|class| class.bases.get(base).copied())
            .collect()
    };
    for (class, base_class, offset) in [
        (
            "endstone::Player",
            "OfflinePlayer",
            Player::OFFLINE_PLAYER_OFFSET as u64,
        ),
        ("endstone::Player", "Mob", 0),
        ("endstone::Mob", "Actor", 0),
        ("endstone::Actor", "CommandSender", 0),
        ("endstone::ConsoleCommandSender", "CommandSender", 0),
        ("endstone::CommandSender", "Permissible", 0),
        ("endstone::Plugin", "CommandExecutor", 0),
        ("endstone::PluginCommand", "Command", 0),
    ] {
        assert!(
            base(class, base_class).iter().all(|found| *found == Some(offset)),
            "{base_class} in {class}: {:?}",
            base(class, base_class)
        );
    }
}
