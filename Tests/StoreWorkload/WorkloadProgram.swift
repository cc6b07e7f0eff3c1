import Foundation
import TestStores

/// Runs operations on a store until a test ends the process with SIGKILL. `StoreKillTests` then compares the store with what the process
/// printed.
///
///     StoreWorkload <kind of store> <place> <seed> <run>
///
/// The tracks of a workload run at once, each its own operations in order. Before an operation the process prints `begin <number>`, and
/// after the store's answer `end <number> <answer>`. ``WorkloadOperation`` derives an operation from the seed and its number.
@main
struct WorkloadProgram {
    /// A process that no test ends must not remain.
    private static let longest = Duration.seconds(60)

    static func main() async {
        do {
            try await run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            say("failed \(error)")
            exit(1)
        }
    }

    private static func run(_ arguments: [String]) async throws {
        guard arguments.count == 4, let stores = NamedStores(rawValue: arguments[0]),
            let seed = UInt64(arguments[2]), let run = Int64(arguments[3])
        else { throw Usage() }
        let store = try await WorkloadStore(at: arguments[1], of: stores.maker)
        let end = ContinuousClock.now + longest
        say("opened")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<WorkloadOperation.tracks {
                group.addTask {
                    var track = try await WorkloadTrack(number, of: store, run: run)
                    for operation in WorkloadOperation.all(of: number, run: run, seed: seed) {
                        guard ContinuousClock.now < end else { return }
                        say("begin \(operation.number)")
                        let answer = try await track.perform(operation)
                        say("end \(operation.number) \(answer)")
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// Prints a whole line in one write, so that a kill leaves no part of a line and tracks do not mix theirs.
    private static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

    private struct Usage: Error, CustomStringConvertible {
        let description = "usage: StoreWorkload <kind of store> <place> <seed> <run>"
    }
}
