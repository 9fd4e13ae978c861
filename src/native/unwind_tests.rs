//! The walk against libgcc's, and against damaged data.

use std::collections::HashMap;

use proptest::prelude::*;

use super::cfi::UnwindData;
use super::registers::Registers;
use super::table::{Entry, ModuleTable};
use super::unwind::{Context, walk};
use super::unwinder::current_modules_unwinder;
use crate::model::{ModuleId, StackEnd};
use crate::sys::maps;
use crate::sys::mem;

#[inline(always)]
fn here() -> (u64, u64, u64) {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp, options(nomem, nostack));
    }
    (pc, sp, bp)
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut libc::c_void, *mut libc::c_void) -> libc::c_int,
        found: *mut libc::c_void,
    ) -> libc::c_int;
    fn _Unwind_GetIP(context: *mut libc::c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut libc::c_void) -> usize;
}

extern "C" fn visit(context: *mut libc::c_void, found: *mut libc::c_void) -> libc::c_int {
    // SAFETY: libgcc gives its context, and back the pointer that was given to it.
    unsafe { (*found.cast::<Vec<(u64, u64)>>()).push((_Unwind_GetIP(context) as u64, _Unwind_GetCFA(context) as u64)) };
    0
}

/// Return addresses and frame addresses.
type Callers = Vec<(u64, u64)>;

/// Both unwinders' view of the callers of one frame.
#[inline(never)]
fn both(depth: u32) -> (Callers, Callers, StackEnd) {
    if depth > 0 {
        return std::hint::black_box(both(depth - 1));
    }
    let mut theirs = Vec::new();
    // SAFETY: the callback has the declared type; libgcc and our panics use the same library.
    unsafe { _Unwind_Backtrace(visit, (&raw mut theirs).cast()) };
    let unwinder = current_modules_unwinder();
    let mut ours = Vec::new();
    let (pc, sp, bp) = here();
    let end = unwinder.unwind(pc, sp, bp, &mut ours);
    (ours, theirs, end)
}

#[test]
fn callers_and_frame_addresses_are_those_that_libgcc_finds() {
    for depth in [0, 3, 40] {
        let (ours, theirs, end) = both(depth);
        assert_eq!(end, StackEnd::Root);
        let their_addresses: Vec<u64> = theirs
            .iter()
            .map(|(address, _)| *address)
            .filter(|address| *address != 0)
            .collect();
        let our_addresses: Vec<u64> = ours.iter().map(|(address, _)| *address).collect();
        assert!(our_addresses.len() > depth as usize + 2);
        // Theirs begins in the calling function itself, at another call.
        assert_eq!(our_addresses, their_addresses[1..], "depth {depth}");
        // libgcc reports with each address the stack pointer there, which is the CFA of the frame it was returned from.
        let frames: HashMap<u64, u64> = theirs.iter().map(|(address, cfa)| (*cfa, *address)).collect();
        let shared = ours.iter().filter(|(_, cfa)| frames.contains_key(cfa)).count();
        assert!(
            shared + 1 >= ours.len(),
            "{shared} of {} frame addresses agree",
            ours.len()
        );
    }
}

struct Section {
    table: ModuleTable,
    addresses: Vec<u64>,
}

/// This executable's table of modules, with unwind data that `damage` has changed.
fn damaged(damage: &dyn Fn(&mut [u8])) -> Option<Section> {
    let ours = damaged as *const () as u64;
    let (images, _) = maps::images();
    let image = images.into_iter().find(|image| {
        let svma = ours.wrapping_sub(image.bias);
        image
            .segments
            .iter()
            .any(|segment| segment.executable && segment.svma.contains(&svma))
    })?;
    let process = std::process::id() as i32;
    let read = |address: u64, into: &mut [u8]| {
        let read = mem::read_own(process, address, into);
        // The header's first bytes say where `.eh_frame` is; without it there is nothing to test.
        if into.len() > 4096 {
            damage(into);
        }
        read
    };
    let unwind = UnwindData::copy(&image, &read)?;
    let code: Vec<_> = image
        .segments
        .iter()
        .filter(|segment| segment.executable)
        .map(|segment| image.bias + segment.svma.start..image.bias + segment.svma.end)
        .collect();
    let addresses = code.iter().flat_map(|range| range.clone().step_by(997)).collect();
    let entry = Entry {
        id: ModuleId::new(u32::MAX),
        bias: image.bias,
        unwind: Some(unwind.into()),
        code,
        readable: true,
    };
    Some(Section {
        table: ModuleTable::new(vec![entry]),
        addresses,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn damaged_unwind_data_never_panics_and_always_ends(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4000),
        words in prop::collection::vec(any::<u64>(), 64),
    ) {
        let damage = |bytes: &mut [u8]| {
            for (at, value) in &flips {
                // The first entries stay in place, so that a header is still a header.
                let at = at.index(bytes.len());
                if at > 64 && let Some(byte) = bytes.get_mut(at) {
                    *byte = *value;
                }
            }
        };
        let Some(section) = damaged(&damage) else {
            return Ok(());
        };
        let mut context = Context::new();
        for (n, address) in section.addresses.iter().enumerate() {
            // A stack of arbitrary words, some of them addresses of code.
            let word = |at: u64| {
                let index = (at / 8) as usize;
                if index.is_multiple_of(3) {
                    section.addresses.get(index % section.addresses.len()).copied()
                } else {
                    words.get(index % words.len()).copied()
                }
            };
            let mut frames = 0_u32;
            let registers = Registers::new(*address, 0x1000 * (n as u64 + 1), 0x1000 * (n as u64 + 1) + 64);
            walk(&section.table, &mut context, registers, word, |_| frames += 1);
            prop_assert!(frames >= 1);
        }
    }
}

#[test]
fn undamaged_data_has_a_rule_nearly_everywhere() {
    let section = damaged(&|_| ()).unwrap();
    let mut context = Context::new();
    let found = section
        .addresses
        .iter()
        .filter(|address| {
            let mut cfa = 0;
            let registers = Registers::new(**address, 0x10_000, 0x10_000);
            walk(
                &section.table,
                &mut context,
                registers,
                |_| Some(0),
                |frame| cfa = frame.cfa,
            );
            cfa != 0
        })
        .count();
    assert!(
        found * 100 > section.addresses.len() * 95,
        "{found} of {}",
        section.addresses.len()
    );
}
