import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import CarillonServer

/// All events of a request, concurrently and in any order: with any first event, it has one result.
@Suite(.timeLimit(.minutes(5)))
struct RequestRaceTests {
    private enum Step: CaseIterable, Sendable {
        case ask, received, replyOne, replyOther, cancel, fetch, sweep, passTime
    }

    /// The answers to the steps of one request.
    private struct Said: Sendable {
        var asked: [Int] = []
        var replies: [UInt8: [Int]] = [:]
        var cancelled: [Int] = []
    }

    private struct Exchange: Sendable {
        var number: Int
        var consumer: ServiceWorld.Phone
        var provider: ServiceWorld.Phone
        var steps: [Step]
    }

    @Test(arguments: RandomSeed.some(24)) func `in random sequences each request has one result, and it is the right one`(
        _ seed: UInt64
    ) async throws {
        var random = SeededRandom(seed: seed)
        let world = try await ServiceWorld()
        var consumers: [ServiceWorld.Phone] = []
        var providers: [ServiceWorld.Phone] = []
        for _ in 0..<2 {
            consumers.append(try await world.phone("com.example.mail", of: "ada"))
            providers.append(try await world.phone("com.example.files", of: "ada"))
        }
        try await world.share("house", "com.example.mail", "com.example.files")
        for provider in providers { try await world.offer(provider) }
        let exchanges = (1...12).map { number in
            Exchange(
                number: number, consumer: consumers[number % 2], provider: providers[number / 2 % 2],
                steps: ([.ask, .ask] + (0..<8).map { _ in Step.allCases.randomElement(using: &random) ?? .ask })
                    .shuffled(using: &random))
        }
        // Of the others, the first one probably finds no request.
        for exchange in exchanges where !exchange.number.isMultiple(of: 3) {
            #expect(await Self.perform(.ask, of: exchange, in: world) == 201)
        }
        let said = await withTaskGroup(of: (Int, Step, Int).self, returning: [Int: Said].self) { group in
            for exchange in exchanges {
                for step in exchange.steps {
                    group.addTask { (exchange.number, step, await Self.perform(step, of: exchange, in: world)) }
                }
            }
            var said: [Int: Said] = [:]
            for await (number, step, status) in group {
                switch step {
                case .ask: said[number, default: Said()].asked.append(status)
                case .replyOne: said[number, default: Said()].replies[1, default: []].append(status)
                case .replyOther: said[number, default: Said()].replies[2, default: []].append(status)
                case .cancel: said[number, default: Said()].cancelled.append(status)
                case .received, .fetch, .sweep, .passTime: break
                }
            }
            return said
        }
        world.clock.pass(3601)
        try await world.sweep()
        var events: [String: [ServiceEvent]] = [:]
        for consumer in consumers {
            while case let more = try await world.events(of: consumer), !more.isEmpty {
                events[consumer.id, default: []] += more
            }
            #expect(try await world.routes.store.unfinishedRequestCount(of: consumer.serial) == 0)
        }
        for exchange in exchanges {
            let answers = try #require(said[exchange.number])
            try Self.check(exchange, answers, events, seed)
        }
    }

    private static func perform(_ step: Step, of exchange: Exchange, in world: ServiceWorld) async -> Int {
        do {
            switch step {
            case .ask:
                return try await world.ask(
                    exchange.number, from: exchange.consumer, to: exchange.provider, ["deadline": .integer(20)]
                ).status
            case .received:
                let path = "/v1/services/requests/\(ServiceWorld.id(exchange.number))/received"
                return try await world.routes.request(.post, path, key: exchange.provider.credential).status
            case .replyOne: return try await world.reply(exchange.number, by: exchange.provider, body: [1]).status
            case .replyOther: return try await world.reply(exchange.number, by: exchange.provider, body: [2]).status
            case .cancel: return try await world.cancel(exchange.number, by: exchange.consumer).status
            case .fetch: return try await world.events(of: exchange.provider).count
            case .sweep: try await world.sweep()
            case .passTime: world.clock.pass(10)
            }
        } catch {
            Issue.record(error)
        }
        return 0
    }

    private static func check(
        _ exchange: Exchange, _ said: Said, _ events: [String: [ServiceEvent]], _ seed: UInt64
    ) throws {
        let id = try #require(ServiceRequestID(ServiceWorld.id(exchange.number)))
        let own = (events[exchange.consumer.id] ?? []).filter { $0.id == id }
        let results = own.filter { if case .received = $0 { false } else { true } }
        let note = Comment("seed \(seed), request \(exchange.number): \(said)")
        #expect(said.asked.allSatisfy { $0 == 201 }, note)
        #expect(own.count - results.count <= 1, note)
        for (device, others) in events where device != exchange.consumer.id {
            #expect(!others.contains { $0.id == id }, note)
        }
        let accepted = said.replies.filter { $0.value.contains(204) }.map(\.key)
        #expect(accepted.count <= 1, note)
        #expect(said.replies.values.joined().allSatisfy { [204, 404, 409].contains($0) }, note)
        #expect(said.cancelled.allSatisfy { [204, 404, 409].contains($0) }, note)
        guard !said.cancelled.contains(204) else {
            #expect(results.isEmpty && accepted.isEmpty, note)
            return
        }
        #expect(results.count == 1, note)
        switch results.first {
        case .reply(_, let from, let content):
            #expect(from == exchange.provider.peer && accepted == content.body, note)
        case .failed(_, let code): #expect(code == "deadline_exceeded" && accepted.isEmpty, note)
        default: Issue.record(note)
        }
    }
}
