import Foundation
import Synchronization

/// A process that a test started: its lines as they are printed, and its exit.
final class Program: Sendable {
    struct Ended: Error, CustomStringConvertible {
        var description: String
    }

    private let log = OutputLog()

    let pid: pid_t
    var output: [String] { log.lines }

    /// The executable under test: the one that was built beside these tests.
    static var carillon: String {
        if let path = ProcessInfo.processInfo.environment["CARILLON_EXECUTABLE"] { return path }
        return built("carillon")
    }

    /// A program that was built beside these tests.
    static func built(_ name: String) -> String {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent(name).path
    }

    /// The root of the package.
    static var packageDirectory: String {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .path
    }

    /// - Parameter input: The content of standard input; nil is an empty one.
    init(
        _ executable: String = Program.carillon, _ arguments: [String], environment: [String: String] = [:],
        input: String? = nil
    ) throws {
        // A server refuses variables that it does not know, such as those of the tests.
        let inherited = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CARILLON_") }
        let all = inherited.merging(environment) { _, new in new }
        let (pid, output) = try Self.launching.withLock { _ in
            try Self.spawn(executable, arguments, all.map { "\($0)=\($1)" }, input)
        }
        self.pid = pid
        // Ends with the process: it reads until the output is closed, and then reads the status.
        Thread.detachNewThread { [log] in log.follow(pid, output) }
    }

    deinit {
        if log.status == nil { kill(pid, SIGKILL) }
    }

    func signal(_ signal: Int32) {
        if log.status == nil { kill(pid, signal) }
    }

    /// One at a time, so that no child inherits files that were opened for another.
    static let launching = Mutex(())

    private static func spawn(
        _ executable: String, _ arguments: [String], _ environment: [String], _ input: String?
    ) throws -> (pid: pid_t, output: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Ended(description: "no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[1]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        let inputFile = NSTemporaryDirectory() + "/input-\(UUID().uuidString)"
        defer { unlink(inputFile) }
        if let input { try Data(input.utf8).write(to: URL(fileURLWithPath: inputFile)) }
        posix_spawn_file_actions_addopen(&actions, 0, input == nil ? "/dev/null" : inputFile, O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A thread of Swift's pool blocks signals, which a child would inherit.
        var blocked = sigset_t()
        sigemptyset(&blocked)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let argv = ([executable] + arguments).map { strdup($0) } + [nil]
        let envp = environment.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        guard posix_spawnp(&pid, executable, &actions, &attributes, argv, envp) == 0 else {
            close(ends[0])
            throw Ended(description: "\(executable) cannot be started")
        }
        return (pid, ends[0])
    }

    /// The first line from `start` on for which the closure has a value.
    func line<Value>(from start: Int = 0, _ match: (String) -> Value?) async throws -> Value {
        var index = start
        while true {
            let isOver = log.status != nil
            let lines = log.lines
            while index < lines.count {
                if let value = match(lines[index]) { return value }
                index += 1
            }
            if isOver {
                throw Ended(
                    description: "the process ended before the line came; it said:\n\(lines.joined(separator: "\n"))")
            }
            await log.change(after: lines.count)
        }
    }

    /// The exit status, when the process has ended and all of its output was read; minus the signal that ended it.
    func exitStatus() async -> Int32 {
        while true {
            if let status = log.status { return status }
            await log.change(after: .max)
        }
    }
}

/// Runs a program to its end, and returns its output.
func run(
    _ arguments: [String], environment: [String: String] = [:], input: String? = nil
) async throws -> (status: Int32, lines: [String]) {
    let program = try Program(Program.carillon, arguments, environment: environment, input: input)
    let status = await program.exitStatus()
    return (status, program.output)
}
