//! The shared object as it was linked.

use std::path::PathBuf;

use harness::Linked;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, elf};

/// Cargo leaves the library beside the test program.
fn path() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libendstone_spark.so")
}

fn plugin() -> Vec<u8> {
    let path = path();
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The values of all dynamic entries with this tag.
fn dynamic(bytes: &[u8], tag: elf::DynamicTag) -> Vec<u64> {
    let file = ElfFile64::<Endianness>::parse(bytes).unwrap();
    let headers = file.elf_header().program_headers(file.endian(), bytes).unwrap();
    let entries = headers
        .iter()
        .find_map(|header| header.dynamic(file.endian(), bytes).unwrap())
        .unwrap();
    entries
        .iter()
        .filter(|entry| entry.tag(file.endian()) == tag)
        .map(|entry| entry.val(file.endian()))
        .collect()
}

#[test]
fn the_entry_is_the_only_export() {
    assert_eq!(Linked::read(&path()).unwrap().exports, ["init_endstone_plugin"]);
}

#[test]
fn the_code_stays_mapped_after_unloading_and_has_a_build_id() {
    let bytes = plugin();
    let flags = dynamic(&bytes, elf::DT_FLAGS_1);
    assert!(
        flags.iter().any(|flags| flags & elf::DF_1_NODELETE.0 != 0),
        "{flags:x?}"
    );
    assert!(object::File::parse(&*bytes).unwrap().build_id().unwrap().is_some());
}

#[test]
fn only_the_c_library_and_the_shared_unwinder_are_linked() {
    let needed = Linked::read(&path()).unwrap().needed;
    assert!(!needed.is_empty());
    for name in needed {
        assert!(
            ["libgcc_s.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"].contains(&name.as_str()),
            "{name}: a second unwinder ends the server at the first C++ exception, and a libpython may be another one"
        );
    }
    let bytes = plugin();
    let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
    assert!(
        file.dynamic_symbols()
            .all(|symbol| !symbol.name().unwrap().starts_with("Py")),
        "CPython is found at run time"
    );
}
