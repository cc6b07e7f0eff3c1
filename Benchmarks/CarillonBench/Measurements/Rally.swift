import NIOCore

/// Sends the next message after the previous one was received and answered.
///
/// `@unchecked Sendable`: it is used only on ``LoadLoop``; its times are read after the run.
final class Rally: @unchecked Sendable {
    private let count: Int
    private let connection: HTTPConnection
    private let server: any PushServer
    private let promise = LoadLoop.loop.makePromise(of: Void.self)
    private var sentAt: UInt64 = 0
    private var expected = ByteBuffer()
    private var isReceived = false
    private var isAnswered = false
    private var isOver = false
    private(set) var frameTimes: [UInt64] = []
    private(set) var answerTimes: [UInt64] = []
    private(set) var acknowledgedCount = 0

    init(count: Int, connection: HTTPConnection, server: any PushServer) {
        self.count = count
        self.connection = connection
        self.server = server
    }

    func run(_ herd: SubscriberHerd) -> EventLoopFuture<Rally> {
        herd.onMessage = { message, _ in self.received(message) }
        sendNext()
        let future = promise.futureResult
        Stall.watch(future) {
            self.frameTimes.count
        } stalled: {
            self.end(.failure(NotMeasured("message \(self.frameTimes.count) was not received and answered")))
        }
        return future.map { self }
    }

    func percentile(_ percent: Int, _ times: KeyPath<Rally, [UInt64]>) -> Double {
        let sorted = self[keyPath: times].sorted()
        guard !sorted.isEmpty else { return .nan }
        return Double(sorted[min(sorted.count - 1, sorted.count * percent / 100)]) / 1e6
    }

    private func sendNext() {
        let number = String(answerTimes.count)
        let body = "message " + String(repeating: "0", count: 7 - number.count) + number + Self.filling
        let request = server.message(ByteBuffer(string: body), to: 0)
        expected = ByteBuffer(string: server.text(of: body))
        isReceived = false
        isAnswered = false
        sentAt = nanoseconds()
        connection.send(request) { self.answered($0) }
    }

    /// The whole body is 85 bytes long.
    private static let filling = String(repeating: ".", count: 70)

    private func received(_ message: ByteBuffer) {
        frameTimes.append(nanoseconds() - sentAt)
        guard !isReceived else { return end(.failure(NotMeasured("a message came twice"))) }
        guard Self.contains(message, expected) else {
            return end(.failure(NotMeasured("another message came: \(String(buffer: message).prefix(300))")))
        }
        isReceived = true
        goOn()
    }

    private func answered(_ result: Result<HTTPAnswer, any Error>) {
        answerTimes.append(nanoseconds() - sentAt)
        do {
            let answer = try result.get()
            guard server.isAccepted(answer) else {
                throw NotMeasured("a message was answered with \(answer.description)")
            }
            if answer.isAcknowledged { acknowledgedCount += 1 }
            isAnswered = true
            goOn()
        } catch {
            end(.failure(error))
        }
    }

    /// The next message is sent in a new turn of the loop, so that an acknowledgement is sent first.
    private func goOn() {
        guard isReceived, isAnswered, !isOver else { return }
        if answerTimes.count == count { return end(.success(())) }
        LoadLoop.loop.execute { self.sendNext() }
    }

    private func end(_ result: Result<Void, any Error>) {
        guard !isOver else { return }
        isOver = true
        promise.completeWith(result)
    }

    private static func contains(_ message: ByteBuffer, _ wanted: ByteBuffer) -> Bool {
        let text = message.readableBytesView
        let wanted = wanted.readableBytesView
        guard let first = wanted.first, text.count >= wanted.count else { return wanted.isEmpty }
        for start in text.startIndex...(text.endIndex - wanted.count)
        where text[start] == first && text[start..<(start + wanted.count)].elementsEqual(wanted) {
            return true
        }
        return false
    }
}
