//! The few instructions of calls and of PLT entries.

use iced_x86::{Code, Decoder, DecoderOptions, Instruction};

use super::header::Machine;

/// The longest call of x86-64, bytes (`call [r8+r9*8+disp32]` with a prefix has 9).
pub(super) const LONGEST_CALL: usize = 9;
/// Enough for what is looked at of a PLT entry, bytes.
pub(super) const PLT_ENTRY: usize = 16;

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// To this address.
    Address(u64),
    /// To the address that is in this place.
    Through(u64),
    /// Only the registers knew.
    Unknown,
}

/// What the code that ends at `address` may be as a call, likelier readings first. `before` is the
/// code in front of that address, at most [`LONGEST_CALL`] bytes.
pub(super) fn calls_before(machine: Machine, before: &[u8], address: u64) -> Vec<Target> {
    match machine {
        Machine::X86_64 => x86_calls(before, address),
        Machine::Aarch64 => arm_call(before, address).into_iter().collect(),
    }
}

/// x86 instructions have any length and cannot be read backwards: each length is tried. A call
/// with its target inside is five bytes; any other call has at least two, and ends in an operand
/// that seldom looks like one.
fn x86_calls(before: &[u8], address: u64) -> Vec<Target> {
    const LENGTHS: [usize; 8] = [5, 6, 2, 3, 7, 4, 8, 9];
    let call = |length: usize| {
        let start = before.len().checked_sub(length)?;
        let instruction = decode(&before[start..], address.wrapping_sub(length as u64));
        (instruction.len() == length).then_some(())?;
        match instruction.code() {
            Code::Call_rel32_64 => Some(Target::Address(instruction.near_branch_target())),
            Code::Call_rm64 if instruction.is_ip_rel_memory_operand() => {
                Some(Target::Through(instruction.ip_rel_memory_address()))
            }
            Code::Call_rm64 => Some(Target::Unknown),
            _ => None,
        }
    };
    LENGTHS.into_iter().filter_map(call).collect()
}

fn arm_call(before: &[u8], address: u64) -> Option<Target> {
    let word = u32::from_le_bytes(*before.last_chunk()?);
    if word & 0xfc00_0000 == 0x9400_0000 {
        // bl: 26 bits of words, signed.
        let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
        return Some(Target::Address(address.wrapping_sub(4).wrapping_add_signed(distance)));
    }
    // blr.
    (word & 0xffff_fc1f == 0xd63f_0000).then_some(Target::Unknown)
}

/// Through which place the PLT entry at `address` jumps; `None` if that is no PLT entry.
pub(super) fn plt_goes_through(machine: Machine, code: &[u8], address: u64) -> Option<u64> {
    match machine {
        Machine::X86_64 => x86_plt(code, address),
        Machine::Aarch64 => arm_plt(code, address),
    }
}

/// `[endbr64] jmp [rip + distance]`.
fn x86_plt(code: &[u8], address: u64) -> Option<u64> {
    let first = decode(code, address);
    let jump = match first.code() {
        Code::Endbr64 => decode(code.get(first.len()..)?, first.next_ip()),
        _ => first,
    };
    let is_jump = jump.code() == Code::Jmp_rm64 && jump.is_ip_rel_memory_operand();
    is_jump.then(|| jump.ip_rel_memory_address())
}

/// `[bti c] adrp x16, page; ldr x17, [x16, offset]`.
fn arm_plt(code: &[u8], address: u64) -> Option<u64> {
    const BTI_C: u32 = 0xd503_245f;
    let word = |at: usize| Some(u32::from_le_bytes(*code.get(at..)?.first_chunk()?));
    let start = if word(0)? == BTI_C { 4 } else { 0 };
    let (adrp, ldr) = (word(start)?, word(start + 4)?);
    if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    // 21 bits of pages, signed: 19 high ones from bit 5 on, 2 low ones from bit 29 on.
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
    let pages = i64::from((pages << 11).cast_signed() >> 11);
    let page = (address.wrapping_add(start as u64) & !0xfff).wrapping_add_signed(pages * 4096);
    Some(page.wrapping_add(u64::from(ldr >> 10 & 0xfff) * 8))
}

/// Enough to know the return from a signal handler by, bytes.
pub(super) const SIGNAL_RETURN: usize = 9;

/// True of the code that handlers of signals return to: nothing but the system call that ends them.
pub(super) fn returns_from_signal(machine: Machine, code: &[u8]) -> bool {
    match machine {
        // mov $__NR_rt_sigreturn,%rax; syscall
        Machine::X86_64 => code.starts_with(&[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05]),
        // mov x8,#__NR_rt_sigreturn; svc #0
        Machine::Aarch64 => code.starts_with(&[0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4]),
    }
}

/// True for endbr64, and for bti c.
pub(super) fn is_landing_pad(machine: Machine, code: [u8; 4]) -> bool {
    match machine {
        Machine::X86_64 => code == [0xf3, 0x0f, 0x1e, 0xfa],
        Machine::Aarch64 => code == [0x5f, 0x24, 0x03, 0xd5],
    }
}

fn decode(code: &[u8], address: u64) -> Instruction {
    Decoder::with_ip(64, code, address, DecoderOptions::NONE).decode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(code: &[u8]) -> Vec<Target> {
        calls_before(Machine::X86_64, code, 0x1000)
    }

    #[test]
    fn calls_of_every_length() {
        let through = Target::Through(0x1000 + 0x10);
        for (code, target) in [
            (&[0x90, 0xe8, 0xf0, 0xff, 0xff, 0xff][..], Target::Address(0xff0)),
            (&[0xff, 0x15, 0x10, 0, 0, 0], through),
            (&[0xff, 0xd0], Target::Unknown),             // call rax
            (&[0x41, 0xff, 0xd4], Target::Unknown),       // call r12
            (&[0xff, 0x50, 0x18], Target::Unknown),       // call [rax+24]
            (&[0xff, 0x54, 0x24, 0x18], Target::Unknown), // call [rsp+24]
            (&[0x41, 0xff, 0x94, 0x24, 1, 2, 0, 0], Target::Unknown), // call [r12+513]
        ] {
            assert_eq!(x86(code).first(), Some(&target), "{code:x?}");
        }
        // Not calls: a jump, a return, nothing at all.
        for code in [&[0xe9, 1, 0, 0, 0][..], &[0xc3], &[]] {
            assert_eq!(x86(code), [], "{code:x?}");
        }
    }

    #[test]
    fn plt_entries_of_x86() {
        let goes = |code: &[u8]| plt_goes_through(Machine::X86_64, code, 0x1000);
        let plain = [0xff, 0x25, 0x10, 0, 0, 0, 0x68, 0, 0, 0, 0];
        assert_eq!(goes(&plain), Some(0x1016));
        assert_eq!(goes(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0x10, 0, 0, 0]), Some(0x101a));
        assert_eq!(goes(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x10, 0, 0, 0]), Some(0x101b));
        assert_eq!(goes(&[0x55, 0x48, 0x89, 0xe5]), None);
        assert_eq!(goes(&[0xff, 0xe0]), None, "jmp rax");
        assert_eq!(goes(&[]), None);
    }

    #[test]
    fn calls_and_plt_entries_of_arm() {
        let word = |word: u32| word.to_le_bytes();
        let calls = |code: u32| calls_before(Machine::Aarch64, &word(code), 0x1000);
        assert_eq!(calls(0x9400_0003), [Target::Address(0xffc + 12)]);
        assert_eq!(calls(0x97ff_ffff), [Target::Address(0xffc - 4)]);
        assert_eq!(calls(0xd63f_0220), [Target::Unknown], "blr x17");
        assert_eq!(calls(0x1400_0003), [], "b");
        // adrp x16, 0x20000; ldr x17, [x16, #0x18], as in a PLT at 0x10390.
        let code = [word(0x9000_0090), word(0xf940_0e11)].concat();
        assert_eq!(plt_goes_through(Machine::Aarch64, &code, 0x10390), Some(0x20018));
        let padded = [&word(0xd503_245f)[..], &code].concat();
        assert_eq!(plt_goes_through(Machine::Aarch64, &padded, 0x10390), Some(0x20018));
        assert_eq!(plt_goes_through(Machine::Aarch64, &code[..7], 0x10390), None);
    }
}
