import APNsFigures
import Foundation

/// Runs `apns-load`, the process that sends with CarillonAPNs.
struct CarillonSender: Sendable {
    private let executable: String
    private let scratch: ScratchDirectory

    init(scratch: ScratchDirectory) throws(NotMeasured) {
        let own = Bundle.main.executableURL?.resolvingSymlinksInPath()
        guard let path = own?.deletingLastPathComponent().appending(path: "apns-load").path,
            FileManager.default.isExecutableFile(atPath: path)
        else { throw NotMeasured("apns-load is not beside this executable; build it with make bench") }
        executable = path
        self.scratch = scratch
    }

    func push(_ load: SendingLoad, to simulator: SimulatedAPNs) async throws -> SendingResult {
        var arguments = [
            "--connections", "\(load.connections)", "--in-flight", "\(load.inFlight)", "--cold", "\(load.cold)", "--warm",
            "\(load.warm)", "--payload", "\(load.payloadBytes)",
        ]
        if load.isBatch { arguments.append("--batch") }
        let figures: Figures.Pushing = try await run("push", arguments, simulator)
        let failures = figures.cold.failures + figures.warm.failures
        guard failures == 0 else { throw NotMeasured("\(failures) pushes were not accepted") }
        return SendingResult(
            perSecond: figures.warm.perSecond, cpuMicroseconds: figures.warm.microsecondsEach,
            firstMilliseconds: figures.firstMilliseconds, coldPerSecond: figures.cold.perSecond,
            coldMicroseconds: figures.cold.microsecondsEach, pushes: figures.cold.pushes + figures.warm.pushes)
    }

    func stall(offering count: Int, to simulator: SimulatedAPNs) async throws -> Figures.Stall {
        let figures: Figures.Stall = try await run("stall", ["--offer", "\(count)"], simulator)
        let ended = figures.answered + figures.timedOut + figures.others
        guard ended == count else { throw NotMeasured("\(ended) pushes ended of \(count) that were offered") }
        return figures
    }

    func crowd(offering count: Int, to simulator: SimulatedAPNs) async throws -> Figures.Crowd {
        let figures: Figures.Crowd = try await run("crowd", ["--offer", "\(count)"], simulator)
        guard figures.others == 0 else { throw NotMeasured("\(figures.others) pushes ended with another error") }
        guard figures.waiting <= figures.bound else {
            throw NotMeasured("\(figures.waiting) pushes wait; the bound is \(figures.bound)")
        }
        return figures
    }

    private func run<Value: Decodable>(
        _ command: String, _ arguments: [String], _ simulator: SimulatedAPNs
    ) async throws -> Value {
        let ended = try await ServerProcess.run(
            executable, [command, "--port", "\(simulator.port)", "--data", simulator.data] + arguments,
            log: scratch.file("apns-load.log"))
        guard let line = ended.printed.split(separator: "\n").last else { throw NotMeasured("apns-load printed nothing") }
        return try JSONDecoder().decode(Value.self, from: Data(line.utf8))
    }
}

extension Figures.Round {
    var perSecond: Double { Double(pushes) / seconds }
    var microsecondsEach: Double { cpuMicroseconds / Double(pushes) }
}

extension Figures.Crowd {
    /// The number of pushes without a result.
    var waiting: Int { offered - answered - refused - others }
}
