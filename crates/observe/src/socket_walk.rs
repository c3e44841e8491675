//! How sockets are reached: whether the kernel lets a program walk over what it keeps at them.
//!
//! Since 5.9 it does, but there are kernels that refuse those walks which could change what they go over
//! (seen on 6.18 of a provider of virtual machines, which refuses fentry as well). Nothing says so
//! but an attempt.

use std::os::fd::{FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{
    BPF_ALU64, BPF_EXIT, BPF_JMP, BPF_K, BPF_MOV, BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, bpf_insn,
    bpf_prog_load, bpf_prog_load_opts,
};
use model::Fact;

use crate::kernel_btf::KernelTypes;

/// How the sockets of the target are reached again and again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketWalk {
    /// Over what the recorder keeps at them: that costs what the sockets of the target cost.
    #[default]
    Storage,
    /// Over the open files, where the kernel refuses the other.
    Files,
}

impl SocketWalk {
    /// For the facts of a run.
    pub fn fact(self) -> Fact {
        let value = match self {
            SocketWalk::Storage => "over the notes at sockets",
            SocketWalk::Files => {
                "over open files (the kernel refuses walks over the notes at sockets): where there are \
                 thousands, sockets that live for less than a second may be missed"
            }
        };
        Fact {
            name: "recorder.socket_walk".to_owned(),
            value: value.to_owned(),
            source: "loading a program".to_owned(),
        }
    }
}

/// Tries it with a program that does nothing, about 0.1 ms.
pub fn of_this_kernel(types: Option<&KernelTypes>) -> SocketWalk {
    let function = types.and_then(|types| types.socket_storage_walk);
    match function.is_some_and(loads) {
        true => SocketWalk::Storage,
        false => SocketWalk::Files,
    }
}

fn loads(function: u32) -> bool {
    let instruction = |code| bpf_insn { code, ..Default::default() };
    let return_0 =
        [instruction((BPF_ALU64 | BPF_MOV | BPF_K) as u8), instruction((BPF_JMP | BPF_EXIT) as u8)];
    let mut options = bpf_prog_load_opts {
        sz: size_of::<bpf_prog_load_opts>() as u64,
        expected_attach_type: BPF_TRACE_ITER,
        attach_btf_id: function,
        ..Default::default()
    };
    // SAFETY: all that is pointed to outlives the call, which copies it and changes nothing.
    let program = unsafe {
        bpf_prog_load(
            BPF_PROG_TYPE_TRACING,
            c"tries_a_walk".as_ptr(),
            c"Dual MIT/GPL".as_ptr(),
            return_0.as_ptr(),
            return_0.len() as u64,
            &raw mut options,
        )
    };
    if program < 0 {
        return false;
    }
    // SAFETY: a new descriptor, which nobody else has.
    drop(unsafe { OwnedFd::from_raw_fd(program) });
    true
}
