//! The server's address space: what Endstone finds at the addresses of Bedrock's functions.
//!
//! Endstone's runtime knows Bedrock's functions as offsets from the executable's base and disassembles the code there in a library
//! constructor, before `main`. So this executable owns a zero image as large as the server (`.bss`, so no file cost), and plants code at
//! the few offsets that the stand-in really drives. It does so from `.preinit_array`, which the dynamic loader runs before every library
//! constructor.

use std::cell::UnsafeCell;
use std::ffi::c_void;

use crate::dedicated_server;
use crate::level;

/// Highest offset that Endstone 0.11.14 reads is 246 MiB; the next server versions grew by some MiB each.
const IMAGE_BYTES: usize = 400 << 20;
/// `mov rax, imm64; jmp rax`: position independent and longer than the hook's own jump.
const PLANTED_BYTES: usize = 12;
const PAGE: usize = 4096;

/// `DedicatedServer::start(std::string const&, Bedrock::ActivationArguments const&)`
pub const DEDICATED_SERVER_START: usize = 0x47c_3bb0;
/// `Level::tick()`
pub const LEVEL_TICK: usize = 0xc89_7700;
/// `CommandRegistry::addEnumValues(...)`: called while plugin commands are registered.
const ADD_ENUM_VALUES: usize = 0x9c9_c1f0;

#[repr(C, align(4096))]
struct Image(UnsafeCell<[u8; IMAGE_BYTES]>);
// SAFETY: nothing in this program reads or writes the image through a Rust reference; code is planted through raw pointers before any
// thread exists, and Endstone's hooks change it before `main`.
unsafe impl Sync for Image {}
#[used]
static IMAGE: Image = Image(UnsafeCell::new([0; IMAGE_BYTES]));

unsafe extern "C" {
    static __ehdr_start: u8;
}

/// The executable's load address, the base of every offset above.
pub fn base() -> usize {
    &raw const __ehdr_start as usize
}

/// The address of the server function at `offset`.
pub fn at(offset: usize) -> usize {
    base() + offset
}

#[used]
#[unsafe(link_section = ".preinit_array")]
static PLANT: extern "C" fn() = plant_all;

extern "C" fn plant_all() {
    plant(DEDICATED_SERVER_START, dedicated_server::start as *const () as usize);
    plant(LEVEL_TICK, level::tick as *const () as usize);
    plant(ADD_ENUM_VALUES, add_enum_values as *const () as usize);
}

extern "C" fn add_enum_values() -> u64 {
    0
}

/// The bytes that jump to `target`.
fn jump_to(target: usize) -> [u8; PLANTED_BYTES] {
    let mut code = [0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0];
    code[2..10].copy_from_slice(&target.to_le_bytes());
    code
}

fn plant(offset: usize, target: usize) {
    let begin = IMAGE.0.get() as usize;
    let address = at(offset);
    // Outside the image there would be other data. Nothing can be reported this early; `verify_hooked` finds the missing code.
    if address < begin || address + PLANTED_BYTES > begin + IMAGE_BYTES {
        return;
    }
    write_code(address, &jump_to(target));
}

/// Replaces the first bytes of a function of a loaded module by a jump to `target`.
///
/// # Safety
/// `address` starts a function of at least 12 bytes that no thread executes now, and `target` has the same signature.
pub unsafe fn redirect(address: usize, target: usize) {
    write_code(address, &jump_to(target));
}

fn write_code(address: usize, code: &[u8; PLANTED_BYTES]) {
    let page = address & !(PAGE - 1);
    let length = address + code.len() - page;
    // SAFETY: the pages are mapped (our image, or a module's text) and no other thread runs code on them yet.
    unsafe {
        if libc::mprotect(
            page as *mut c_void,
            length,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
        ) == 0
        {
            std::ptr::copy_nonoverlapping(code.as_ptr(), address as *mut u8, code.len());
            libc::mprotect(page as *mut c_void, length, libc::PROT_READ | libc::PROT_EXEC);
        }
    }
}

/// Whether Endstone replaced the code planted at `offset` by a jump into its own detour.
pub fn is_hooked(offset: usize, planted_target: usize) -> bool {
    // SAFETY: the offset lies in the image, which is mapped and readable; `plant` checked it.
    let now = unsafe { std::slice::from_raw_parts(at(offset) as *const u8, PLANTED_BYTES) };
    now != jump_to(planted_target) && now.iter().any(|&byte| byte != 0)
}
