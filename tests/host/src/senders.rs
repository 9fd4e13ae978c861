//! Somebody who gives commands and is not the console: a player, and a command block.
//!
//! C++ objects of our own with the slots that Endstone's command path and plugins use; the world that the real ones live in is not here. What they are told is
//! printed as `player: ...` and `block: ...`.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use endstone_spark::endstone::abi::{
    CommandSender, CommandSenderSlots, CxxString, Message, MessageKind, OfflinePlayerSlots, PermissibleSlots, Slot,
    UniqueId,
};

use crate::say::say;
use crate::unwinding;

const ID: [u8; 16] = [0x53; 16];
/// More than `endstone::Player` has.
const SLOTS: usize = 256;

/// Whether the player is there.
static ONLINE: AtomicBool = AtomicBool::new(false);
/// What the player may do.
static PERMISSIONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// An object that only has vtables: of its own, and of the part of a player that is an `OfflinePlayer`.
#[repr(C)]
struct Object([*const *const c_void; 2]);

// SAFETY: never changed after it is made.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

fn vtable(slots: &[(Slot, *const c_void)]) -> *const *const c_void {
    let table = Box::leak(Box::new([unexpected as *const c_void; SLOTS]));
    for (slot, function) in slots {
        table[slot.index] = *function;
    }
    table.as_ptr()
}

extern "C" fn unexpected() {
    say("a function of a sender was called that the stand-in does not have");
    std::process::abort();
}

fn player_object() -> &'static Object {
    static PLAYER: OnceLock<Object> = OnceLock::new();
    PLAYER.get_or_init(|| {
        let own = vtable(&sender(itself as *const c_void, to_player as *const c_void));
        let offline = vtable(&[(OfflinePlayerSlots::GET_UNIQUE_ID, unique_id as *const c_void)]);
        Object([own, offline])
    })
}

fn block_object() -> &'static Object {
    static BLOCK: OnceLock<Object> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let own = vtable(&sender(nothing as *const c_void, to_block as *const c_void));
        Object([own, std::ptr::null()])
    })
}

fn sender(as_player: *const c_void, send: *const c_void) -> [(Slot, *const c_void); 6] {
    [
        (PermissibleSlots::HAS_PERMISSION, has_permission as *const c_void),
        (CommandSenderSlots::AS_CONSOLE, nothing as *const c_void),
        (CommandSenderSlots::AS_PLAYER, as_player),
        (CommandSenderSlots::SEND_MESSAGE, send),
        (CommandSenderSlots::SEND_ERROR_MESSAGE, send),
        (CommandSenderSlots::GET_NAME, name as *const c_void),
    ]
}

fn address(object: &'static Object) -> *mut c_void {
    (&raw const *object).cast_mut().cast()
}

/// The player comes, and may do this.
pub fn join(permissions: &str) {
    let permissions = permissions.split_whitespace().map(str::to_owned).collect();
    *PERMISSIONS.lock().unwrap_or_else(PoisonError::into_inner) = permissions;
    // Relaxed: written and read on the server thread.
    ONLINE.store(true, Ordering::Relaxed);
}

/// The player goes.
pub fn leave() {
    // Relaxed: as above.
    ONLINE.store(false, Ordering::Relaxed);
}

/// The one who gives a command: `player` or `block`.
pub fn named(name: &str) -> Option<CommandSender<'static>> {
    let object = match name {
        "player" => player_object(),
        "block" => block_object(),
        _ => return None,
    };
    // SAFETY: an object with all slots of a sender that are used; it lives for ever.
    unsafe { CommandSender::borrow(address(object)) }
}

/// `Server::getPlayer` by id.
pub unsafe extern "C" fn player_by_id(_server: *const c_void, id: UniqueId) -> *mut c_void {
    // Relaxed: as above.
    if ONLINE.load(Ordering::Relaxed) && id.to_bytes() == ID {
        address(player_object())
    } else {
        std::ptr::null_mut()
    }
}

unsafe extern "C" fn nothing(_this: *mut c_void) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn itself(this: *mut c_void) -> *mut c_void {
    this
}

unsafe extern "C" fn unique_id(_this: *const c_void) -> UniqueId {
    UniqueId::from_bytes(ID)
}

unsafe extern "C" fn name(result: *mut CxxString, _this: *const c_void) -> *mut CxxString {
    // SAFETY: the caller passes room for the string.
    unsafe { result.write(CxxString::new("Steve")) };
    result
}

/// Command blocks may do everything.
unsafe extern "C" fn has_permission(this: *mut c_void, name: *const CxxString) -> bool {
    // SAFETY: the caller's string.
    let name = unsafe { &*name }.to_text();
    this != address(player_object())
        || PERMISSIONS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|permission| *permission == name)
}

/// Unwinds, when a test asks for it.
unsafe extern "C-unwind" fn to_player(_this: *mut c_void, message: *const Message) {
    unwinding::throw_if_asked();
    // SAFETY: the caller's message.
    tell("player", unsafe { &*message });
}

unsafe extern "C" fn to_block(_this: *mut c_void, message: *const Message) {
    // SAFETY: the caller's message.
    tell("block", unsafe { &*message });
}

fn tell(receiver: &str, message: &Message) {
    match message.kind() {
        MessageKind::Text(text) => say(&format!("{receiver}: {}", text.to_text())),
        MessageKind::Translatable(text) => say(&format!(
            "{receiver}: {} {}",
            text.text.to_text(),
            text.params.to_texts().join(" ")
        )),
        MessageKind::Other => say(&format!("{receiver}: a message of an unknown kind")),
    }
}
