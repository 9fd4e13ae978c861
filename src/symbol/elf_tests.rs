use std::process::Command;

use super::*;

const ASSEMBLY: &str = "
.text
.globl sized
.type sized, @function
sized: ret
.size sized, 1
.byte 0x90, 0x90, 0x90
.globl unsized
.type unsized, @function
unsized: ret
ret
.globl label
label: ret
.type data_in_code, @object
data_in_code: .byte 1
.section .text.last,\"ax\"
.globl last
.type last, @function
last: ret
ret
";

#[test]
fn functions_without_a_size_end_at_the_next_symbol_or_with_their_section() {
    let folder = tempfile::tempdir().unwrap();
    let (source, path) = (folder.path().join("a.s"), folder.path().join("a.so"));
    std::fs::write(&source, ASSEMBLY).unwrap();
    // The two sections of code stay apart, so that the end of the last one is not the start of another.
    let script = folder.path().join("apart.ld");
    std::fs::write(
        &script,
        "SECTIONS { .late 0x9000 : { *(.text.last) } } INSERT AFTER .bss;",
    )
    .unwrap();
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-nostdlib", "-Wl,-T"])
        .arg(&script)
        .arg("-o")
        .arg(&path)
        .arg(&source);
    assert!(command.status().unwrap().success());

    let data = std::fs::read(&path).unwrap();
    let elf = Elf::parse(&data[..]).unwrap();
    let (mut functions, mut text) = (Vec::new(), Vec::new());
    elf.functions(&mut functions, &mut text).unwrap();
    let table = super::super::table::FunctionTable::new(functions, text);
    let symbol = |name: &str| {
        let section = elf
            .sections
            .iter()
            .find(|section| section.sh_type(LITTLE) == SHT_SYMTAB)
            .unwrap();
        let symbols: &[Symbol] = section.data_as_array(LITTLE, elf.data).unwrap();
        let names = elf.sections[section.sh_link(LITTLE) as usize]
            .data(LITTLE, elf.data)
            .unwrap();
        let found = symbols.iter().find(|symbol| {
            names[symbol.st_name(LITTLE) as usize..].split(|byte| *byte == 0).next() == Some(name.as_bytes())
        });
        found.unwrap().st_value(LITTLE)
    };
    let name = |address: u64| {
        table
            .at(address)
            .map(|(_, name)| String::from_utf8(name.to_vec()).unwrap())
    };

    assert_eq!(name(symbol("sized")).as_deref(), Some("sized"));
    assert_eq!(name(symbol("sized") + 1), None);
    assert_eq!(name(symbol("unsized") + 1).as_deref(), Some("unsized"));
    assert_eq!(name(symbol("unsized") + 2), None);
    assert_eq!(name(symbol("label")), None);
    assert_eq!(name(symbol("last") + 1).as_deref(), Some("last"));
    assert_eq!(name(symbol("last") + 2), None);
    assert_eq!(name(symbol("last") + 100), None);
}
