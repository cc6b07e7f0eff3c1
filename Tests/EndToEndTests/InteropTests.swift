import Foundation
import Synchronization
import TestSupport
import Testing

/// Independent programs from PyPI, against the real executable. `make test` installs them and sets their place.
///
/// Each file is a process with servers and ports of its own; as many run in parallel as keep the machine busy.
@Suite(
    .timeLimit(.minutes(60)),
    .enabled(if: Interop.python != nil || Interop.isCI, "run `make test`, which installs them")
)
struct InteropTests {
    @Test(arguments: try Interop.files())
    func `independent clients and senders find the behaviour of the standards`(file: String) async throws {
        try await Interop.expectSuccess(["-m", "pytest", "-q", "-p", "no:cacheprovider", file])
    }

    @Test func `nothing accepted is lost, and nothing final comes back, over 10 kills`() async throws {
        try await Interop.expectSuccess(["durability/__main__.py", "--kills", "10"])
    }

    @Test func `no file was left out`() throws {
        let files = try Interop.files()
        #expect(files.count >= 18, "\(files)")
    }
}

/// The Python that has them.
enum Interop {
    static let python = ProcessInfo.processInfo.environment["CARILLON_INTEROP"]
    /// In CI nothing is skipped, so that it fails there without them.
    static let isCI = ProcessInfo.processInfo.environment["CI"] != nil

    static let directory = Program.packageDirectory + "/Tests/EndToEndTests/Interop"
    private static let turnstile = Turnstile(limit: 6)

    /// The largest first: a slow file must not be the last to begin.
    static func files() throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
            .filter { $0.hasPrefix("test_") && $0.hasSuffix(".py") }
        let sizes = try names.map { name in
            try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")[.size] as? Int ?? 0
        }
        return zip(names, sizes).sorted { ($1.1, $0.0) < ($0.1, $1.0) }.map(\.0)
    }

    static func expectSuccess(_ arguments: [String]) async throws {
        let paths = arguments.map { $0.hasSuffix(".py") ? "\(directory)/\($0)" : $0 }
        try await turnstile.pass {
            let start = ContinuousClock.now
            var environment = ["CARILLON_EXECUTABLE": Program.carillon, "PYTHONDONTWRITEBYTECODE": "1"]
            if TestHomes.count > 1 { environment["CARILLON_TEST_HOMES"] = String(TestHomes.count) }
            let program = try Program(python ?? "python3", paths, environment: environment)
            let status = await program.exitStatus()
            print("\(paths.first { $0.hasSuffix(".py") } ?? ""): \((ContinuousClock.now - start).components.seconds) s")
            #expect(status == 0, "\(program.output.suffix(120).joined(separator: "\n"))")
        }
    }
}

/// Admits a limited number at a time; others wait, in the order of their arrival.
private final class Turnstile: Sendable {
    private struct State {
        var free: Int
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(limit: Int) { state = Mutex(State(free: limit)) }

    func pass(_ work: () async throws -> Void) async throws {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiters.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
        defer {
            let next = state.withLock { state in
                if state.waiters.isEmpty { state.free += 1 }
                return state.waiters.isEmpty ? nil : state.waiters.removeFirst()
            }
            next?.resume()
        }
        try await work()
    }
}
