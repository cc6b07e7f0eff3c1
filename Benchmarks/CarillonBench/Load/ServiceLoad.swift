import NIOCore

/// Makes consumers send requests and providers send replies. Each acknowledges its events. A request is finished when its
/// consumer has received the result.
///
/// `@unchecked Sendable`: it is used only on ``LoadLoop``; its figures are read after the run.
final class ServiceLoad: @unchecked Sendable {
    struct Plan: Sendable {
        var count: Int
        /// The largest number of unfinished requests.
        var room: Int
        /// Whether the replies are sent only after all requests were sent.
        var answersLast = false
    }

    private let plan: Plan
    private let pairs: [ServicePair]
    private let promise = LoadLoop.loop.makePromise(of: Void.self)
    /// Connections without a request at present.
    private var askers: [HTTPConnection]
    private var answerers: [HTTPConnection]
    private var unfinished: Set<String> = []
    /// The requests that arrived at the providers, in the order of arrival.
    private var arrived: [(pair: Int, id: String)] = []
    private var asked = 0
    private var accepted = 0
    private var answered = 0
    private var taken = 0
    private var isOver = false
    private var beganAt: UInt64 = 0
    private var lastAt: UInt64 = 0
    private(set) var finished = 0

    /// The seconds from the first request until the last result was read.
    var seconds: Double { Double(lastAt - beganAt) / 1e9 }

    init(_ plan: Plan, _ pairs: [ServicePair], over connections: [HTTPConnection]) {
        self.plan = plan
        self.pairs = pairs
        askers = Array(connections[..<(connections.count / 2)])
        answerers = Array(connections[(connections.count / 2)...])
    }

    /// - Parameter herd: The sockets of the pairs, numbered as in ``ServicePair/subscription(_:of:)``.
    func run(_ herd: SubscriberHerd) -> EventLoopFuture<ServiceLoad> {
        herd.onMessage = { message, subscriber in self.received(message, subscriber) }
        beganAt = nanoseconds()
        lastAt = beganAt
        ask()
        let future = promise.futureResult
        Stall.watch(future) {
            self.accepted + self.taken + self.finished
        } stalled: {
            self.fail("\(self.finished) of \(self.plan.count) requests of a service have their result, then no more")
        }
        return future.map { self }
    }

    private func ask() {
        while !isOver, asked < plan.count, unfinished.count < plan.room, let connection = askers.popLast() {
            let (pair, id) = (pairs[asked % pairs.count], Self.newID())
            asked += 1
            unfinished.insert(id)
            connection.send(pair.request.with(id)) { result in
                guard self.expect(201, result) else { return }
                self.accepted += 1
                self.askers.append(connection)
                self.ask()
                self.answer()
                self.endIfDone()
            }
        }
    }

    private func answer() {
        guard !plan.answersLast || accepted == plan.count && arrived.count == plan.count else { return }
        while !isOver, answered < arrived.count, let connection = answerers.popLast() {
            let (pair, id) = arrived[answered]
            answered += 1
            connection.send(pairs[pair].reply.with(id)) { result in
                guard self.expect(204, result) else { return }
                self.taken += 1
                self.answerers.append(connection)
                self.answer()
                self.endIfDone()
            }
        }
    }

    private func received(_ message: ByteBuffer, _ subscriber: Int) {
        guard let event = message.text(after: "\"event\":\"").map({ String(buffer: $0) }),
            let id = message.text(after: "\"id\":\"").map({ String(buffer: $0) })
        else { return fail("something else came: \(String(buffer: message).prefix(200))") }
        switch (event, subscriber.isMultiple(of: 2)) {
        case ("request", false):
            arrived.append((subscriber / 2, id))
            answer()
        case ("reply", true):
            guard unfinished.remove(id) != nil else { return fail("a result came that nobody waits for, or came twice") }
            finished += 1
            lastAt = nanoseconds()
            ask()
            endIfDone()
        default: fail("the event \(event) came")
        }
    }

    private func expect(_ status: Int, _ result: Result<HTTPAnswer, any Error>) -> Bool {
        switch result {
        case .success(let answer) where answer.status == status: return true
        case .success(let answer): fail("a request of a service, or a reply, was answered with \(answer.description)")
        case .failure(let error): fail("\(error)")
        }
        return false
    }

    private func endIfDone() {
        guard finished == plan.count, taken == plan.count, accepted == plan.count else { return }
        end(.success(()))
    }

    private func fail(_ reason: String) { end(.failure(NotMeasured(reason))) }

    private func end(_ result: Result<Void, any Error>) {
        guard !isOver else { return }
        isOver = true
        promise.completeWith(result)
    }

    private static func newID() -> String {
        let halves = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }
        return halves.map { String(repeating: "0", count: 16 - $0.count) + $0 }.joined()
    }
}
