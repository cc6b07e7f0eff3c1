import Foundation

/// The memory and CPU time of a process and its children, as Linux reports them under `/proc`.
struct ProcessUsage {
    /// The proportional set size of their memory in KiB: shared memory counts once.
    var memoryKiB: Double
    /// User and system time, in microseconds.
    var cpuMicroseconds: Double
    /// How often one of their threads started to wait.
    var waits: Double

    init(of pid: pid_t) throws {
        memoryKiB = 0
        cpuMicroseconds = 0
        waits = 0
        for pid in [pid] + Self.children(of: pid) {
            guard let memory = Self.read("/proc/\(pid)/smaps_rollup"), let share = Self.value("Pss:", in: memory),
                let stat = Self.read("/proc/\(pid)/stat"), let time = Self.cpuTicks(stat)
            else { throw NotMeasured("/proc/\(pid) cannot be read; memory and CPU are measured on Linux only") }
            memoryKiB += share
            cpuMicroseconds += time * 1_000_000 / Double(sysconf(Int32(_SC_CLK_TCK)))
            for thread in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? [] {
                guard let status = Self.read("/proc/\(pid)/task/\(thread)/status") else { continue }
                waits += Self.value("voluntary_ctxt_switches:", in: status) ?? 0
            }
        }
    }

    static func children(of pid: pid_t) -> [pid_t] {
        (read("/proc/\(pid)/task/\(pid)/children") ?? "").split(separator: " ").compactMap { pid_t($0) }
    }

    private static func read(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func value(_ name: String, in text: String) -> Double? {
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            return line.dropFirst(name.count).split(whereSeparator: \.isWhitespace).first.flatMap { Double($0) }
        }
        return nil
    }

    /// Returns the 14th and 15th fields. The second field, the name, is in parentheses and can contain spaces.
    private static func cpuTicks(_ stat: String) -> Double? {
        guard let parenthesis = stat.lastIndex(of: ")") else { return nil }
        let fields = stat[stat.index(after: parenthesis)...].split(separator: " ")
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return nil }
        return user + system
    }
}

extension ProcessUsage {
    /// The CPU time of this process, in microseconds.
    static func ownMicroseconds() throws -> Double {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { throw NotMeasured("there is no CPU clock") }
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }
}
