import NIOCore

/// Sends a number of requests over a number of connections, one request at a time on each connection.
///
/// `@unchecked Sendable`: it is used only on ``LoadLoop``.
final class RequestPump: @unchecked Sendable {
    private let count: Int
    private let request: @Sendable (Int) -> ByteBuffer
    private let check: @Sendable (Int, HTTPAnswer) -> Bool
    private let promise: EventLoopPromise<Void>
    private var next = 0
    private var answered = 0
    private var isOver = false

    /// - Parameter check: Whether the response to the n-th request is correct. An incorrect response ends the run.
    private init(
        count: Int, request: @escaping @Sendable (Int) -> ByteBuffer,
        check: @escaping @Sendable (Int, HTTPAnswer) -> Bool
    ) {
        self.count = count
        self.request = request
        self.check = check
        promise = LoadLoop.loop.makePromise()
    }

    /// Completes after all responses, or with an error if no response arrives for a while.
    static func run(
        _ count: Int, over connections: [HTTPConnection], request: @escaping @Sendable (Int) -> ByteBuffer,
        check: @escaping @Sendable (Int, HTTPAnswer) -> Bool
    ) -> EventLoopFuture<Void> {
        let pump = RequestPump(count: count, request: request, check: check)
        if count == 0 { pump.end(.success(())) }
        for connection in connections { pump.sendNext(on: connection) }
        Stall.watch(pump.promise.futureResult) {
            pump.answered
        } stalled: {
            pump.end(.failure(NotMeasured("\(pump.answered) of \(count) requests were answered, then no more")))
        }
        return pump.promise.futureResult
    }

    private func sendNext(on connection: HTTPConnection) {
        guard next < count, !isOver else { return }
        let index = next
        next += 1
        connection.send(request(index)) { result in
            switch result {
            case .success(let answer):
                guard self.check(index, answer) else {
                    return self.end(.failure(NotMeasured("request \(index) was answered with \(answer.description)")))
                }
                self.answered += 1
                if self.answered == self.count { return self.end(.success(())) }
                self.sendNext(on: connection)
            case .failure(let error):
                self.end(.failure(error))
            }
        }
    }

    private func end(_ result: Result<Void, any Error>) {
        guard !isOver else { return }
        isOver = true
        promise.completeWith(result)
    }
}
