import Foundation
import NIOCore
import Synchronization

/// A child process whose output is in a file.
final class ServerProcess: Sendable {
    let pid: pid_t
    let name: String
    private let log: String

    private init(pid: pid_t, name: String, log: String) {
        self.pid = pid
        self.name = name
        self.log = log
    }

    static func start(_ path: String, _ arguments: [String], log: String) throws -> ServerProcess {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var argv: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
        argv.append(nil)
        defer { for argument in argv { free(argument) } }
        var pid: pid_t = 0
        let status = posix_spawn(&pid, path, &actions, nil, argv, environ)
        guard status == 0 else {
            throw NotMeasured("\(path) cannot be started: \(String(cString: strerror(status)))")
        }
        Running.add(pid)
        return ServerProcess(pid: pid, name: (path as NSString).lastPathComponent, log: log)
    }

    /// The output of a command, with its user and system time.
    struct Ended: Sendable {
        var printed: String
        var cpuMicroseconds: Double
    }

    /// Runs a command until it ends.
    static func run(_ path: String, _ arguments: [String], log: String) async throws -> Ended {
        let process = try start(path, arguments, log: log)
        let (status, usage) = try await process.ended()
        guard status == 0 else {
            throw NotMeasured("\(process.name) \(arguments.first ?? "") failed: \(process.printed.suffix(500))")
        }
        return Ended(
            printed: process.printed, cpuMicroseconds: usage.ru_utime.microseconds + usage.ru_stime.microseconds)
    }

    /// Runs a command until it ends, and returns its output.
    static func output(_ path: String, _ arguments: [String], log: String) async throws -> String {
        try await run(path, arguments, log: log).printed
    }

    /// The output of the process so far.
    var printed: String {
        String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
    }

    /// Whether the process has ended. Its status can still be read after this.
    var hasEnded: Bool {
        var info = siginfo_t()
        return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo == SIGCHLD
    }

    /// Sends a signal, and waits for the end. The process is killed after a while.
    func stop(_ signal: Int32 = SIGTERM) async {
        kill(pid, signal)
        do {
            _ = try await ended(within: .seconds(40))
        } catch {
            for child in ProcessUsage.children(of: pid) { kill(child, SIGKILL) }
            kill(pid, SIGKILL)
            _ = try? await ended()
        }
    }

    /// Waits for the process to end. Returns its exit status, or the negative number of the signal, and its resource usage.
    private func ended(within limit: Duration = .seconds(600)) async throws -> (status: Int32, usage: rusage) {
        let start = ContinuousClock.now
        var status: Int32 = 0
        var usage = rusage()
        while wait4(pid, &status, WNOHANG, &usage) == 0 {
            guard ContinuousClock.now - start < limit else { throw NotMeasured("\(name) did not end in time") }
            try await Task.sleep(for: .milliseconds(2))
        }
        Running.remove(pid)
        return (status & 0x7F == 0 ? (status >> 8) & 0xFF : -(status & 0x7F), usage)
    }
}

extension timeval {
    fileprivate var microseconds: Double { Double(tv_sec) * 1e6 + Double(tv_usec) }
}

/// The processes that must not outlive this process.
enum Running {
    private static let pids = Mutex<Set<pid_t>>([])

    static func add(_ pid: pid_t) { pids.withLock { _ = $0.insert(pid) } }
    static func remove(_ pid: pid_t) { pids.withLock { _ = $0.remove(pid) } }

    static func killAll() {
        for pid in pids.withLock({ $0 }) {
            for child in ProcessUsage.children(of: pid) { kill(child, SIGKILL) }
            kill(pid, SIGKILL)
        }
    }
}
