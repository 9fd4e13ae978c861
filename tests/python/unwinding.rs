//! A plain unwinder over what is loaded now, for the tests of the Python side: the real one is not theirs to use.

use std::ops::Range;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, ModuleSectionInfo, MustNotAllocateDuringUnwind, Unwinder as _};

struct Sections {
    base: u64,
    found: Vec<(&'static [u8], Range<u64>, &'static [u8])>,
}

impl ModuleSectionInfo<&'static [u8]> for Sections {
    fn base_svma(&self) -> u64 {
        self.base
    }
    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        self.found
            .iter()
            .find(|section| section.0 == name)
            .map(|section| section.1.clone())
    }
    fn section_data(&mut self, name: &[u8]) -> Option<&'static [u8]> {
        self.found
            .iter()
            .find(|section| section.0 == name)
            .map(|section| section.2)
    }
}

pub type Cache = CacheX86_64<MustNotAllocateDuringUnwind>;

pub struct Unwinder(UnwinderX86_64<&'static [u8], MustNotAllocateDuringUnwind>);

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: usize, data: *mut libc::c_void) -> i32 {
    // SAFETY: dl_iterate_phdr passes a valid record; `data` is the unwinder of `Unwinder::new`. Nothing is unloaded in these tests, so the
    // mapped sections stay.
    unsafe {
        let unwinder = &mut *data.cast::<Unwinder>();
        let headers = std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum as usize);
        let bias = (*info).dlpi_addr;
        let bytes = |range: &Range<u64>| {
            std::slice::from_raw_parts((bias + range.start) as *const u8, (range.end - range.start) as usize)
        };
        let loads: Vec<_> = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).collect();
        let Some(index) = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME) else {
            return 0;
        };
        let index = index.p_vaddr..index.p_vaddr + index.p_memsz;
        let index_bytes = bytes(&index);
        let offset = i32::from_le_bytes(index_bytes[4..8].try_into().unwrap());
        let frames_start = index.start.wrapping_add(4).wrapping_add_signed(i64::from(offset));
        let Some(holder) = loads
            .iter()
            .find(|load| (load.p_vaddr..load.p_vaddr + load.p_memsz).contains(&frames_start))
        else {
            return 0;
        };
        let frames = frames_start..holder.p_vaddr + holder.p_filesz;
        let base = loads.iter().map(|load| load.p_vaddr).min().unwrap();
        let end = loads.iter().map(|load| load.p_vaddr + load.p_memsz).max().unwrap();
        let mut found = vec![
            (&b".eh_frame_hdr"[..], index.clone(), index_bytes),
            (&b".eh_frame"[..], frames.clone(), bytes(&frames)),
        ];
        if let Some(text) = loads.iter().find(|load| load.p_flags & libc::PF_X != 0) {
            let text = text.p_vaddr..text.p_vaddr + text.p_filesz;
            found.push((&b".text"[..], text.clone(), bytes(&text)));
        }
        let avma = bias + base..bias + end;
        unwinder.0.add_module(Module::new(
            String::new(),
            avma.clone(),
            avma.start,
            Sections { base, found },
        ));
        0
    }
}

impl Unwinder {
    /// Over all modules that are loaded now.
    pub fn new() -> Self {
        let mut unwinder = Unwinder(UnwinderX86_64::new());
        // SAFETY: `add` gets the unwinder back within this call.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut unwinder).cast()) };
        unwinder
    }

    /// Calls `visit` with each return address and the stack pointer after that return; false when the root was not reached. Allocates nothing.
    pub fn unwind(&self, cache: &mut Cache, pc: u64, sp: u64, bp: u64, visit: &mut dyn FnMut(u64, u64)) -> bool {
        let mut registers = UnwindRegsX86_64::new(pc, sp, bp);
        let mut address = FrameAddress::InstructionPointer(pc);
        let mut read = |at: u64| {
            if at < sp {
                return Err(());
            }
            // SAFETY: above the stack pointer of a running thread lies its stack; the CFI of its frames points nowhere else.
            Ok(unsafe { *(at as *const u64) })
        };
        for _ in 0..4_000 {
            match self.0.unwind_frame(address, &mut registers, cache, &mut read) {
                Ok(Some(return_address)) => {
                    visit(return_address, registers.sp());
                    match FrameAddress::from_return_address(return_address) {
                        Some(next) => address = next,
                        None => return true,
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        false
    }

    /// From here outwards.
    #[inline(never)]
    pub fn unwind_here(&self, visit: &mut dyn FnMut(u64, u64)) -> bool {
        let (pc, sp, bp): (u64, u64, u64);
        // SAFETY: reads three registers at one point.
        unsafe {
            std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) bp);
        }
        self.unwind(&mut Cache::new_in(), pc, sp, bp, visit)
    }
}
