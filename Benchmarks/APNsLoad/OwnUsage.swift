import ArgumentParser
import Foundation

/// The CPU time and memory of this process.
enum OwnUsage {
    /// User and system time, in microseconds.
    static func cpuMicroseconds() throws -> Double {
        var time = timespec()
        guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else { throw ValidationError("there is no CPU clock") }
        return Double(time.tv_sec) * 1e6 + Double(time.tv_nsec) / 1e3
    }

    /// The resident memory in bytes.
    static func resident() throws -> Int { try memory("VmRSS:") }

    /// The largest resident memory so far, in bytes.
    static func residentAtMost() throws -> Int { try memory("VmHWM:") }

    private static func memory(_ name: String) throws -> Int {
        for line in try String(contentsOfFile: "/proc/self/status", encoding: .utf8).split(separator: "\n")
        where line.hasPrefix(name) {
            let kibibytes = line.dropFirst(name.count).split(whereSeparator: \.isWhitespace).first.flatMap { Int($0) }
            if let kibibytes { return kibibytes * 1024 }
        }
        throw ValidationError("/proc/self/status says nothing of \(name)")
    }
}
