//! What the running kernel and its modules say of their tracepoints (BTF).
//!
//! libbpf-rs gives the kernel's own types only, and goes through all of them for each name. This is
//! the same library below it, asked once for all names.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs;
use std::ptr::NonNull;

use libbpf_rs::libbpf_sys::{
    BTF_KIND_CONST, BTF_KIND_DATASEC, BTF_KIND_ENUM, BTF_KIND_FUNC, BTF_KIND_FUNC_PROTO,
    BTF_KIND_FWD, BTF_KIND_INT, BTF_KIND_PTR, BTF_KIND_RESTRICT, BTF_KIND_STRUCT,
    BTF_KIND_TYPE_TAG, BTF_KIND_TYPEDEF, BTF_KIND_UNION, BTF_KIND_VOLATILE, btf,
    btf__find_by_name_kind, btf__free, btf__load_module_btf, btf__load_vmlinux_btf,
    btf__name_by_offset, btf__type_by_id, btf__type_cnt, btf_param, btf_type, btf_var_secinfo,
};

use crate::prototype::Prototype;

/// Where the kernel shows its own types and those of each loaded module.
const FOLDER: &str = "/sys/kernel/btf";
/// A tracepoint's arguments are those of the function type of this name.
const PREFIX: &str = "btf_trace_";
/// Types refer to others at most so often before one that says something: real ones five times.
const STEPS: usize = 32;

/// What of the types of the running kernel and of its loaded modules matters here.
#[derive(Clone, Debug)]
pub struct KernelTypes {
    /// The arguments of all tracepoints, by name.
    pub tracepoints: BTreeMap<String, Prototype>,
    /// From a CPU's run queue to what it counts of its interrupts, in bytes. On x86 both are variables of
    /// the CPU (`runqueues`; `__preempt_count`, or `pcpu_hot`, which begins elsewhere and has it inside);
    /// `None` if the kernel does not say where such are. Elsewhere it is a field of the task, and this 0.
    pub preempt_count_from_rq: Option<i64>,
    /// Maps that allocate have an allocator of their own (`struct bpf_mem_alloc`, since 6.1).
    pub has_map_allocator: bool,
    /// The number of the function whose arguments a walk over the storage of sockets gets.
    pub socket_storage_walk: Option<u32>,
}

/// `None` if the kernel does not show its types. About 5 ms.
pub fn kernel_types() -> Option<KernelTypes> {
    let kernel = Types::of_the_kernel()?;
    Some(KernelTypes {
        preempt_count_from_rq: kernel.preempt_count_from_rq(),
        has_map_allocator: kernel.find(c"bpf_mem_alloc", BTF_KIND_STRUCT).is_some(),
        socket_storage_walk: kernel.find(c"bpf_iter_bpf_sk_storage_map", BTF_KIND_FUNC),
        tracepoints: tracepoints(&kernel),
    })
}

fn tracepoints(kernel: &Types) -> BTreeMap<String, Prototype> {
    let mut found = kernel.tracepoints(1);
    let modules = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    for module in modules.filter(|entry| entry.file_name() != "vmlinux") {
        let name = module.file_name().to_string_lossy().into_owned();
        if let Some(types) = Types::of_module(kernel, &name) {
            found.extend(types.tracepoints(kernel.count()));
        }
    }
    found
}

/// The types of the kernel, or of the kernel and one module.
struct Types(NonNull<btf>);

impl Drop for Types {
    fn drop(&mut self) {
        // SAFETY: libbpf gave it to us, and nobody else frees it.
        unsafe { btf__free(self.0.as_ptr()) };
    }
}

/// A type, without what does not matter for an argument.
enum Kind {
    Pointer(u32),
    Function(Vec<u32>),
    Integer(u32),
    Structure(String),
    Other,
}

impl Types {
    fn of_the_kernel() -> Option<Types> {
        // SAFETY: it has no arguments, and gives null where it fails.
        NonNull::new(unsafe { btf__load_vmlinux_btf() }).map(Types)
    }

    /// Of a loaded module; to be dropped before `kernel`.
    fn of_module(kernel: &Types, module: &str) -> Option<Types> {
        let name = CString::new(module).ok()?;
        // SAFETY: a terminated string, and types that outlive the result.
        NonNull::new(unsafe { btf__load_module_btf(name.as_ptr(), kernel.0.as_ptr()) }).map(Types)
    }

    /// How many there are; their numbers begin at 1.
    fn count(&self) -> u32 {
        // SAFETY: the types live as long as `self`.
        unsafe { btf__type_cnt(self.0.as_ptr()) }
    }

    fn get(&self, number: u32) -> Option<&btf_type> {
        // SAFETY: as above; null for a number that there is not.
        unsafe { btf__type_by_id(self.0.as_ptr(), number).as_ref() }
    }

    fn name(&self, one: &btf_type) -> &str {
        // SAFETY: as above; a terminated string, or null.
        let name =
            unsafe { NonNull::new(btf__name_by_offset(self.0.as_ptr(), one.name_off).cast_mut()) };
        // SAFETY: it lives as long as the types.
        name.map_or("", |name| unsafe { CStr::from_ptr(name.as_ptr()) }.to_str().unwrap_or(""))
    }

    fn find(&self, name: &CStr, kind: u32) -> Option<u32> {
        // SAFETY: the types live as long as `self`, and the string is terminated.
        let number = unsafe { btf__find_by_name_kind(self.0.as_ptr(), name.as_ptr(), kind) };
        u32::try_from(number).ok()
    }

    fn preempt_count_from_rq(&self) -> Option<i64> {
        if cfg!(not(target_arch = "x86_64")) {
            return Some(0);
        }
        // Sections come last, and there are 100,000 types.
        let all = (1..self.count()).rev().filter_map(|number| self.get(number));
        let mut sections = all.filter(|one| kind_of(one) == BTF_KIND_DATASEC);
        let per_cpu = variables(sections.find(|one| self.name(one) == ".data..percpu")?);
        let named = |name| per_cpu.iter().find(|one| self.is_named(one.type_, name));
        let count = named("__preempt_count").or_else(|| named("pcpu_hot"))?;
        Some(i64::from(count.offset) - i64::from(named("runqueues")?.offset))
    }

    fn is_named(&self, number: u32, name: &str) -> bool {
        self.get(number).is_some_and(|one| self.name(one) == name)
    }

    fn tracepoints(&self, first: u32) -> BTreeMap<String, Prototype> {
        let typedefs = (first..self.count()).filter_map(|number| {
            let one = self.get(number).filter(|one| kind_of(one) == BTF_KIND_TYPEDEF)?;
            Some((self.name(one).strip_prefix(PREFIX)?.to_owned(), self.prototype(number)?))
        });
        typedefs.collect()
    }

    /// The typedef is of a pointer to a function; its first argument is the tracepoint's own data.
    fn prototype(&self, typedef: u32) -> Option<Prototype> {
        let Kind::Pointer(function) = self.resolve(typedef)? else { return None };
        let Kind::Function(arguments) = self.resolve(function)? else { return None };
        Some(Prototype(arguments.into_iter().skip(1).map(|number| self.argument(number)).collect()))
    }

    fn argument(&self, number: u32) -> String {
        match self.resolve(number) {
            Some(Kind::Integer(bytes)) => format!("u{}", 8 * bytes),
            Some(Kind::Pointer(to)) => match self.resolve(to) {
                Some(Kind::Structure(name)) => format!("{name} *"),
                Some(Kind::Integer(1)) => "char *".to_owned(),
                _ => "void *".to_owned(),
            },
            Some(Kind::Structure(name)) => name,
            _ => "?".to_owned(),
        }
    }

    /// What a type is once names and qualifiers are taken away; `None` for void.
    fn resolve(&self, mut number: u32) -> Option<Kind> {
        for _ in 0..STEPS {
            let one = self.get(number).filter(|_| number != 0)?;
            // SAFETY: both fields are a u32.
            let size_or_type = unsafe { one.__bindgen_anon_1.size };
            match kind_of(one) {
                BTF_KIND_TYPEDEF | BTF_KIND_CONST | BTF_KIND_VOLATILE | BTF_KIND_RESTRICT
                | BTF_KIND_TYPE_TAG => number = size_or_type,
                BTF_KIND_PTR => return Some(Kind::Pointer(size_or_type)),
                BTF_KIND_INT | BTF_KIND_ENUM => return Some(Kind::Integer(size_or_type)),
                BTF_KIND_STRUCT | BTF_KIND_UNION | BTF_KIND_FWD => {
                    return Some(Kind::Structure(self.name(one).to_owned()));
                }
                BTF_KIND_FUNC_PROTO => return Some(Kind::Function(arguments(one))),
                _ => return Some(Kind::Other),
            }
        }
        None
    }
}

fn kind_of(one: &btf_type) -> u32 {
    one.info >> 24 & 0x1f
}

/// The variables of a section.
fn variables(section: &btf_type) -> &[btf_var_secinfo] {
    // SAFETY: libbpf has checked that so many stand behind a section, and they live as long.
    unsafe { std::slice::from_raw_parts(behind(section), count(section)) }
}

/// How many parts a type has.
fn count(one: &btf_type) -> usize {
    (one.info & 0xffff) as usize
}

/// Where its parts begin.
fn behind<T>(one: &btf_type) -> *const T {
    (&raw const *one).wrapping_add(1).cast()
}

/// The numbers of the types of the arguments of a function type.
fn arguments(function: &btf_type) -> Vec<u32> {
    // SAFETY: libbpf has checked that so many arguments stand behind a function type.
    let arguments: &[btf_param] =
        unsafe { std::slice::from_raw_parts(behind(function), count(function)) };
    arguments.iter().map(|argument| argument.type_).collect()
}
