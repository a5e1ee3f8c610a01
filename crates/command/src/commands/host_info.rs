//! `hostInfo`: the machine that the server runs on.

use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::Action;
use bunko_bson::{ValueRef, Writer};
use bunko_observe::machine::Machine;
use bunko_request::facts::CommandFacts;
use bunko_session::Halt;
use std::thread::available_parallelism;

const MEBIBYTE: u64 = 1 << 20;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts { name: "hostInfo", ..CommandFacts::PLAIN },
    privileges: Privileges::OnCluster(Action::HostInfo),
    run,
    ..Command::PLAIN
};

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let machine = Machine::read();
    let page_bytes = rustix::param::page_size() as u64;
    let open_files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    reply
        .begin_document("system")
        .append("currentTime", ValueRef::DateTime(invocation.service.world.now_ms()))
        .append("hostname", &*invocation.service.facts.host)
        .append("cpuAddrSize", usize::BITS as i32)
        .append("memSizeMB", (machine.memory_bytes / MEBIBYTE) as i64)
        .append("memLimitMB", (machine.memory_limit_bytes / MEBIBYTE) as i64)
        .append("numCores", available_parallelism().map_or(1, usize::from) as i32)
        .append("numCoresAvailableToProcess", available_parallelism().map_or(-1, |cores| cores.get() as i32))
        .append("numPhysicalCores", machine.physical_cores as i32)
        .append("numCpuSockets", machine.cpu_sockets as i32)
        .append("cpuArch", std::env::consts::ARCH)
        .append("numaEnabled", machine.numa_nodes > 1)
        .append("numNumaNodes", machine.numa_nodes as i32)
        .end()
        .begin_document("os")
        .append("type", if cfg!(target_os = "linux") { "Linux" } else { std::env::consts::OS })
        .append("name", &machine.os_name)
        .append("version", &format!("Kernel {}", machine.kernel))
        .end()
        .begin_document("extra")
        .append("versionString", &machine.kernel_build)
        .append("libcVersion", if cfg!(target_env = "musl") { "musl" } else { "glibc" })
        .append("kernelVersion", &machine.kernel)
        .append("cpuString", &machine.cpu_model)
        .append("cpuFrequencyMHz", &machine.cpu_mhz)
        .append("cpuFeatures", &machine.cpu_features)
        .append("pageSize", page_bytes as i64)
        .append("numPages", (machine.memory_bytes / page_bytes) as i32)
        .append("maxOpenFiles", open_files.map_or(i32::MAX, |limit| i32::try_from(limit).unwrap_or(i32::MAX)))
        .end();
    Ok(())
}
