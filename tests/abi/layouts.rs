//! Sizes, offsets and enumerators, against the debug information.

use endstone_spark::endstone::abi::{ClassLayout, ENUMS, Foreign, LAYOUTS, Member, PluginBase};
use harness::abi::{self, Differences};

use super::released::Released;

fn assert_none(differences: Differences) {
    let lines = differences.unwrap();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
fn every_layout_is_the_released_one() {
    for layout in LAYOUTS {
        assert_none(abi::layout(Released::types(), layout));
    }
}

#[test]
fn every_enumerator_has_the_released_number() {
    for ours in ENUMS {
        assert_none(abi::enumerators(Released::types(), ours));
    }
}

#[test]
fn a_wrong_size_a_wrong_offset_and_a_wrong_passing_are_each_found() {
    let with = |change: fn(&mut ClassLayout)| {
        let mut layout = PluginBase::LAYOUT;
        change(&mut layout);
        abi::layout(Released::types(), &layout).unwrap().join("\n")
    };
    assert_eq!(with(|_| {}), "");
    assert!(with(|layout| layout.size += 8).contains("bytes, not"));
    assert!(with(|layout| layout.in_memory = false).contains("travels through memory, not in registers"));
    let moved = with(|layout| {
        layout.members = &[Member {
            name: "server_",
            offset: 16,
        }]
    });
    assert!(
        moved.contains("server_ is at ") && moved.contains(", not 16"),
        "{moved}"
    );
    let renamed = with(|layout| {
        layout.members = &[Member {
            name: "renamed_",
            offset: 16,
        }]
    });
    assert!(renamed.contains("renamed_ is gone"), "{renamed}");
    let unknown = with(|layout| layout.class = "endstone::Plugins");
    assert!(unknown.contains("no such class"), "{unknown}");
}

#[test]
fn the_parts_of_strings_maps_functions_and_messages_are_where_they_are_read() {
    assert_none(abi::parts(Released::types()));
}

#[test]
fn base_classes_are_where_pointers_are_converted() {
    assert_none(abi::bases(Released::types()));
}
