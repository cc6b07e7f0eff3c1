import Foundation

/// Describes the machine of the measurement.
enum Machine {
    static func description(executable: String, scratch: ScratchDirectory) async -> [String] {
        var lines: [String] = []
        let processors = read("/proc/cpuinfo")
        let model = value("model name", in: processors).map { "\($0), " } ?? ""
        let memory = ProcessInfo.processInfo.physicalMemory / (1 << 20)
        lines.append("\(model)\(ProcessInfo.processInfo.processorCount) cores, \(memory) MiB of memory")
        let system = value("PRETTY_NAME", in: read("/etc/os-release"))?.replacing("\"", with: "")
        let kernel = read("/proc/sys/kernel/osrelease").trimmingCharacters(in: .whitespacesAndNewlines)
        lines.append("\(system ?? ProcessInfo.processInfo.operatingSystemVersionString), kernel \(kernel)")
        lines.append("disk: \(DiskProbe.describe(scratch))")
        let load = read("/proc/loadavg").split(separator: " ").first ?? "unknown"
        let date = Date.now.formatted(.iso8601.year().month().day())
        lines.append("\(date), load average before the run \(load); loopback, the load on the same cores")
        // The commit of the checkout in which the executable was built; nil for an executable in another place.
        let place = (executable as NSString).deletingLastPathComponent
        let commit = try? await ServerProcess.output(
            "/usr/bin/git", ["-C", place.isEmpty ? "." : place, "describe", "--always", "--dirty"],
            log: scratch.file("git.log"))
        let nginx = try? await ServerProcess.output(
            "/usr/bin/dpkg-query", ["-W", "-f", "${Package} ${Version} ", "nginx-light", "libnginx-mod-nchan"],
            log: scratch.file("dpkg.log"))
        let h2load = try? await ServerProcess.output(
            "/usr/bin/dpkg-query", ["-W", "-f", "${Package} ${Version}", "nghttp2-client"], log: scratch.file("dpkg.log"))
        if let commit { lines.append("Carillon at commit \(commit.trimmingCharacters(in: .whitespacesAndNewlines))") }
        if let nginx { lines.append("\(nginx.trimmingCharacters(in: .whitespaces)), 2 workers") }
        if let h2load { lines.append("\(h2load.trimmingCharacters(in: .whitespaces)) (h2load), one thread") }
        let command = (["carillon-bench"] + CommandLine.arguments.dropFirst()).joined(separator: " ")
        lines.append("`\(command)`")
        return lines
    }

    private static func read(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    }

    /// Returns the value of the first line that starts with a name, after `:` or `=`.
    private static func value(_ name: String, in text: String) -> String? {
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            guard let separator = line.firstIndex(where: { $0 == ":" || $0 == "=" }) else { continue }
            return line[line.index(after: separator)...].trimmingCharacters(in: .whitespaces)
        }
        return nil
    }
}
