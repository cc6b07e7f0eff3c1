import CarillonAPNsSimulator
import Foundation
import Synchronization
import Testing

@testable import CarillonAPNs

/// Very many pushes to a service that misbehaves at random: each is counted exactly once.
///
/// `CARILLON_APNS_SOAK` sets their number (20,000 without it), `CARILLON_APNS_SEED` the random seed.
@Suite(.serialized, .timeLimit(.minutes(30)))
struct SimulatedSoakTests {
    /// The actions of the service for each push, by the push's number.
    struct Ledger {
        var accepted: [UInt8]
        var rejected: [UInt8]
        var lastRequest = 0
        var missed = 0

        init(count: Int) {
            accepted = [UInt8](repeating: 0, count: count)
            rejected = accepted
        }

        mutating func read(_ requests: [APNsSimulator.ReceivedRequest]) {
            guard let first = requests.first else { return }
            missed += max(0, first.number - lastRequest - 1)
            for request in requests where request.number > lastRequest {
                lastRequest = request.number
                let number = Samples.number(String(request.path.split(separator: "/").last ?? ""))
                if request.status == 200 { accepted[number] += 1 } else { rejected[number] += 1 }
            }
        }
    }

    /// The result of a push for the client, in a byte.
    enum Notified: UInt8 {
        case nothing, accepted, rejected, unprocessed, unknown

        init(_ result: Result<APNsResponse, APNsError>) {
            switch result {
            case .success(let response): self = response.isAccepted ? .accepted : .rejected
            case .failure(let error): self = error.mayHaveBeenProcessed ? .unknown : .unprocessed
            }
        }
    }

    static let faults: [APNsSimulator.FaultRule] = [
        .init(.reset(.refusedStream), rate: 0.02), .init(.reset(.refusedStream, isRepeated: true), rate: 0.005),
        .init(.goAway(reason: "Shutdown", last: .this), rate: 0.0004),
        .init(.goAway(reason: nil, last: .before), rate: 0.0004), .init(.goAway(reason: nil, last: .none), rate: 0.0002),
        .init(.goAway(reason: nil, last: .all), rate: 0.0002), .init(.close, rate: 0.0002),
        .init(.close, at: .processed, rate: 0.0002), .init(.streamLimit(1), rate: 0.002),
        .init(.streamLimit(30), rate: 0.002), .init(.streamLimit(1000), rate: 0.01),
        .init(.streamWindow(40), rate: 0.001), .init(.streamWindow(65_535), rate: 0.003),
        .init(.refuseOthers, rate: 0.001), .init(.reset(.internalError), rate: 0.001),
        .init(.reset(.internalError), at: .processed, rate: 0.001), .init(.silence, rate: 0.00005),
        .init(.silence, at: .processed, rate: 0.00005), .init(.wedge, at: .processed, rate: 0.00001),
        .init(.delay(.milliseconds(30)), rate: 0.01), .init(.reject(.badDeviceToken), rate: 0.01),
        .init(.reject(.unregistered), at: .headers, stopsBody: true, rate: 0.01),
        .init(.answer(status: 503, .html), rate: 0.001), .init(.answer(status: 400, .huge(bytes: 50_000)), rate: 0.0005),
    ]

    @Test func `every push is accounted for exactly once`() async throws {
        let settings = ProcessInfo.processInfo.environment
        let count = settings["CARILLON_APNS_SOAK"].flatMap(Int.init) ?? 20_000
        let seed = settings["CARILLON_APNS_SEED"].flatMap(UInt64.init) ?? 1
        let scene = try await Scene(
            simulator: {
                $0.rules.unknownDevices = .accept
                $0.recordedRequests = 100_000
                $0.recordsBodies = false
                $0.seed = seed
                $0.faults = Self.faults
            },
            client: {
                $0.timeout = .seconds(20)
                $0.pool.suspectsAfter = .seconds(1)
                $0.pool.answersPingWithin = .seconds(1)
                $0.retryPolicy = .never
                // The test is about the accounting, not about the pace.
                $0.replacedPerSecond = 100
            })
        let simulator = scene.simulator
        let ledger = Mutex(Ledger(count: count))
        // It ends with the test, below.
        let reader = Task {
            var awaited = 0
            while !Task.isCancelled {
                awaited += 20_000
                try await simulator.waitForRequests(awaited)
                ledger.withLock { $0.read(simulator.requests) }
            }
        }
        var results = [Notified](repeating: .nothing, count: count)
        var sums: [String: Int] = [:]
        var repeated = 0
        var done = 0
        var memory: [Int] = []
        let tokens = (0..<count).lazy.map { String(format: "%064x", $0) }
        for await result in try scene.client.send(.alert("Hi"), to: tokens) {
            let number = Samples.number(result.recipient)
            if results[number] != .nothing { repeated += 1 }
            results[number] = Notified(result.result)
            sums[Scene.word(result.result), default: 0] += 1
            done += 1
            if done.isMultiple(of: max(1, count / 10)) { memory.append(ResidentMemory.kibibytes()) }
        }
        reader.cancel()
        await scene.client.shutDown()
        ledger.withLock { $0.read(simulator.requests) }
        await simulator.stop()

        let (accepted, rejected, missed) = ledger.withLock { ($0.accepted, $0.rejected, $0.missed) }
        #expect(missed == 0)
        #expect(done == count)
        #expect(repeated == 0)
        var wrong: [String] = []
        for (number, notified) in results.enumerated() {
            // A push that was processed is never sent again.
            if accepted[number] + rejected[number] > 1 { wrong.append("\(number) was processed twice") }
            let isTrue =
                switch notified {
                case .accepted: accepted[number] == 1
                case .rejected, .unprocessed: accepted[number] == 0
                case .unknown: true
                case .nothing: false
                }
            if !isTrue { wrong.append("\(number): told \(notified), accepted \(accepted[number]) times") }
        }
        #expect(wrong.isEmpty, "\(wrong.prefix(20))")
        #expect((sums["accepted"] ?? 0) > count * 7 / 10)
        // Back-off keeps a service in trouble from being stormed.
        #expect(simulator.connections.last?.number ?? 0 < 50 + count / 300)
        if count >= 200_000 { #expect((memory.last ?? 0) - memory[2] < 64 << 10, "\(memory)") }
        let report = "\(count) pushes, seed \(seed): \(sums.sorted { $0.value > $1.value })"
        print("\(report), \(simulator.connections.last?.number ?? 0) connections, resident KiB \(memory)")
    }
}

/// The memory that this process uses.
enum ResidentMemory {
    static func kibibytes() -> Int {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") })
        else { return 0 }
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
    }
}
