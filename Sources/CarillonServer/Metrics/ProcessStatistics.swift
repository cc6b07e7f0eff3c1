import CarillonCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Statistics of this process from the operating system. Unavailable values are left out.
enum ProcessStatistics {
    static func samples() -> [MetricsRegistry.Sample] {
        var usage = rusage()
        var files = rlimit()
        var samples: [MetricsRegistry.Sample] = []
        #if os(Linux)
            let (who, limit) = (RUSAGE_SELF.rawValue, __rlimit_resource_t(RLIMIT_NOFILE.rawValue))
        #else
            let (who, limit) = (RUSAGE_SELF, RLIMIT_NOFILE)
        #endif
        if getrusage(who, &usage) == 0 {
            samples.append(.init(.cpuTime, value: usage.ru_utime.seconds + usage.ru_stime.seconds))
        }
        if getrlimit(limit, &files) == 0 { samples.append(.init(.openFilesLimit, value: Double(files.rlim_cur))) }
        #if os(Linux)
            samples += procSamples()
        #endif
        return samples
    }

    #if os(Linux)
        private static func procSamples() -> [MetricsRegistry.Sample] {
            var samples: [MetricsRegistry.Sample] = []
            // The second number counts pages in RAM (proc(5)).
            if let sizes = text(of: "/proc/self/statm")?.split(separator: " "), sizes.count > 1, let pages = Double(sizes[1])
            {
                samples.append(.init(.residentMemory, value: pages * Double(sysconf(Int32(_SC_PAGESIZE)))))
            }
            if let files = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
                samples.append(.init(.openFiles, value: Double(files.count)))
            }
            if let started = startTime { samples.append(.init(.startTime, value: started)) }
            return samples
        }

        /// The 22nd field of `stat` counts ticks since the start of the machine. The name, in brackets, can contain spaces.
        private static let startTime: Double? = {
            guard let stat = text(of: "/proc/self/stat"), let name = stat.lastIndex(of: ")"),
                let boot = text(of: "/proc/stat")?.split(separator: "\n").first(where: { $0.hasPrefix("btime ") }),
                let booted = Double(boot.dropFirst(6))
            else { return nil }
            let fields = stat[name...].dropFirst(2).split(separator: " ")
            guard fields.count > 19, let ticks = Double(fields[19]) else { return nil }
            return booted + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
        }()

        private static func text(of file: String) -> String? { try? String(contentsOfFile: file, encoding: .utf8) }
    #endif
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1e6 }
}
