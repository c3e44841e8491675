//! A walk over the open files of one process.

use std::ptr::NonNull;

use libbpf_rs::{AsRawLibbpf, Link, ProgramMut, libbpf_sys};

/// Attaches an `iter/task_file` program to the files of one process; libbpf-rs only knows the walk
/// over all. `None` if the kernel cannot do it (before 6.1).
pub fn attach(program: &ProgramMut<'_>, tgid: u32) -> Option<Link> {
    let mut of_process = libbpf_sys::bpf_iter_link_info::default();
    of_process.task.pid = tgid;
    let options = libbpf_sys::bpf_iter_attach_opts {
        link_info: &raw mut of_process,
        link_info_len: size_of_val(&of_process) as u32,
        sz: size_of::<libbpf_sys::bpf_iter_attach_opts>() as u64,
        ..Default::default()
    };
    // SAFETY: the program is loaded, and the options, with what they point to, outlive the call,
    // which copies them.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_iter(
            program.as_libbpf_object().as_ptr(),
            &raw const options,
        )
    };
    // SAFETY: libbpf gives a link of its own, or null; it is owned here alone.
    NonNull::new(link).map(|link| unsafe { Link::from_ptr(link) })
}
