import Foundation
import Logging
import NIOHTTP2
import Synchronization
import TestSupport
import Testing

@testable import CarillonAPNs

/// Many pushes to a service that misbehaves at random: each has one result, and none is processed twice.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SoakTests {
    /// The actions of the service, decided by a generator that can be repeated.
    final class Misbehaviour: Sendable {
        private struct State {
            var generator: SeededRandom
            var lastStreams: [Int: Int] = [:]
            var processed: [String: Int] = [:]
        }

        private let state: Mutex<State>
        init(seed: UInt64) { state = Mutex(State(generator: SeededRandom(seed: seed))) }

        var processed: [String: Int] { state.withLock { $0.processed } }

        func serve(_ connection: ServerConnection, _ request: ServerRequest) {
            let (roll, isIgnored) = state.withLock { state -> (Int, Bool) in
                // Streams above the last stream of a GOAWAY are not processed.
                let isIgnored = state.lastStreams[connection.number].map { request.stream > $0 } ?? false
                return (Int.random(in: 0..<1000, using: &state.generator), isIgnored)
            }
            guard !isIgnored else { return }
            switch roll {
            case 0..<20: connection.reset(request.stream, .refusedStream)
            case 20..<24:
                state.withLock { $0.lastStreams[connection.number] = request.stream }
                process(request)
                connection.goAway(last: request.stream)
                connection.accept(request)
            case 24..<27: connection.close()
            case 27..<30:
                process(request)
                connection.close()
            case 30..<33:
                connection.settings([
                    .init(parameter: .maxConcurrentStreams, value: [1, 5, 50, 1000][roll % 4])
                ])
                process(request)
                connection.accept(request)
            case 33..<35: process(request)
            case 35..<38: connection.reset(request.stream, .internalError)
            case 38..<60:
                process(request)
                connection.reject(request, 400, "BadDeviceToken")
            default:
                process(request)
                connection.accept(request)
            }
        }

        private func process(_ request: ServerRequest) {
            state.withLock { $0.processed[request.token, default: 0] += 1 }
        }
    }

    @Test(arguments: RandomSeed.some(1...2)) func `every push has one result and none is processed twice`(seed: UInt64)
        async throws
    {
        let misbehaviour = Misbehaviour(seed: seed)
        let stage = try await Stage(
            configure: {
                $0.timeout = .seconds(3)
                $0.batchWindow = 100
                $0.pool.maximum = 3
                $0.replacedPerSecond = 100
                $0.logger.logLevel = .error
            },
            script: { misbehaviour.serve($0, $1) })
        let count = 3000
        var results: [String: [APNsResult<String>]] = [:]
        for await result in try stage.client.send(.alert("Hi"), to: Samples.tokens(count)) {
            results[result.recipient, default: []].append(result)
        }
        let processed = misbehaviour.processed
        #expect(results.count == count)
        #expect(results.values.allSatisfy { $0.count == 1 })
        #expect(processed.values.allSatisfy { $0 == 1 })
        var answered = 0
        for result in results.values.joined() {
            let wasProcessed = processed[result.recipient] != nil
            if result.response != nil {
                answered += 1
                #expect(wasProcessed)
            } else if wasProcessed {
                #expect(result.error?.mayHaveBeenProcessed == true, "\(result.result)")
            }
        }
        #expect(answered > count / 2)
        try await stage.end()
    }
}
