import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Reads a device's inbox for one request, which waits for a while where there is nothing.
///
/// The answer is written as it is read from the store, part by part, each when the client has taken the one before:
/// `{"envelopes":[…],"more":…}`, each envelope as the frame that a socket would carry.
struct InboxPoll: Sendable {
    let domain: HomeDomain
    let readiness: Readiness

    struct Question: Sendable {
        var device: DeviceSerial
        /// The most envelopes; where it is 0, none is looked for.
        var max: Int
        /// The version of Carillon's extension that the client speaks.
        var version: Int
        /// The kinds that the client asks for; nil: all.
        var only: Set<EnvelopeKind>?
    }

    /// The members of the answer behind the envelopes.
    ///
    /// - Parameter last: The position of the last envelope; nil if there is no envelope.
    typealias Others = @Sendable (_ last: Int64?) throws -> [JSONValue.Member]

    private struct Part: Sendable {
        var envelopes: [Envelope]
        /// Whether more may wait behind them.
        var more: Bool
    }

    /// What one part reads from the store: its text is a third longer.
    private static let partBytes = AnswerMemory.partBytes * 3 / 4
    /// An answer ends behind the part that reaches it.
    private static let answerBytes = 4 << 20

    func answer(
        _ question: Question, waitSeconds: Int = 0, in context: RouteContext, others: @escaping Others = { _ in [] }
    ) async throws -> Response {
        guard question.max > 0 else { return try Self.empty(others) }
        guard waitSeconds > 0, let share = context.share else {
            return try await look(question, context.share, others, from: Reached()) ?? Self.empty(others)
        }
        // It hears of what comes from now on, and misses nothing between the look and the waiting.
        let waiting = WaitingPoll(
            of: question.device, at: domain.home, waitSeconds: waitSeconds,
            isHead: context.isHead)
        let reached = Reached()
        do {
            let found = try await look(question, share, others, from: reached)
            // One that began while the polls were being ended was not told.
            if found != nil || readiness.isStopping {
                waiting.end()
                return try found ?? Self.empty(others)
            }
        } catch {
            waiting.end()
            throw error
        }
        waiting.wait { [self] isLast in
            if let found = try await look(question, share, others, from: reached) { return found }
            return try isLast ? Self.empty(others) : nil
        }
        share.park(waiting)
        return Response(status: .ok)
    }

    /// An answer without envelopes.
    static func empty(_ others: Others) throws -> Response {
        var text = opening
        close(&text, more: false, others: try others(nil))
        return response(text)
    }

    /// How far an inbox was looked through in vain: what lies before is not wanted.
    private final class Reached: Sendable {
        let position = Mutex<Int64>(0)
    }

    /// Nil where there is nothing.
    private func look(
        _ question: Question, _ share: ConnectionShare?, _ others: @escaping Others, from reached: Reached
    ) async throws -> Response? {
        let start = reached.position.withLock { $0 }
        let found = try await domain.answers.part(for: share?.address, bytes: { Self.needed($0, by: question) }) {
            try await part(of: question, after: start, limit: question.max, reached)
        }
        guard let (first, place) = found else { return nil }
        guard let place, Self.hasParts(first, of: question) else {
            var more = first.more
            if more, let last = first.envelopes.last { more = try await waits(question, after: last.position) }
            var text = Self.opening
            Self.add(first.envelopes, to: &text, at: domain.time.now())
            Self.close(&text, more: more, others: try others(first.envelopes.last?.position))
            if let place {
                place.shrink(to: text.readableBytes)
                if text.readableBytes > AnswerMemory.partBytes {
                    try domain.answers.admitLarge(place, of: question.device)
                }
                share?.keep(place)
            }
            return Self.response(text)
        }
        try domain.answers.admitLarge(place, of: question.device)
        return Response(
            status: .ok, headers: Self.headers,
            body: ResponseBody { [self] writer in
                defer { place.giveBack() }
                try await write(first, of: question, others, to: &writer)
                try await writer.finish(nil)
            })
    }

    @concurrent private func write(
        _ first: Part, of question: Question, _ others: Others, to writer: inout any ResponseBodyWriter
    ) async throws {
        var part = first
        var (count, bytes) = (0, 0)
        var last: Int64?
        while true {
            var text = count == 0 ? Self.opening : ByteBuffer(string: ",")
            Self.add(part.envelopes, to: &text, at: domain.time.now())
            count += part.envelopes.count
            bytes += part.envelopes.reduce(0) { $0 + $1.byteCount }
            last = part.envelopes.last?.position ?? last
            let isEnough = count >= question.max || bytes >= Self.answerBytes
            try await writer.write(text)
            guard part.more, let last else { break }
            if isEnough {
                part.more = try await waits(question, after: last)
                break
            }
            let next = try await self.part(of: question, after: last, limit: question.max - count)
            guard let next else {
                part.more = false
                break
            }
            part = next
        }
        var text = ByteBuffer()
        Self.close(&text, more: part.more, others: try others(last))
        try await writer.write(text)
    }

    /// Whether more parts follow the first.
    private static func hasParts(_ first: Part, of question: Question) -> Bool {
        first.more && first.envelopes.count < question.max
    }

    /// What an answer takes that begins with a part: its envelopes, their text, and what waits for the peer.
    private static func needed(_ first: Part, by question: Question) -> Int {
        if hasParts(first, of: question) { return AnswerMemory.bytesOfPart }
        let bytes = first.envelopes.reduce(0) { $0 + $1.byteCount }
        return bytes <= AnswerMemory.uncountedBytes ? bytes : min(3 * bytes, AnswerMemory.bytesOfPart)
    }

    /// Whether anything is wanted behind a position.
    private func waits(_ question: Question, after position: Int64) async throws -> Bool {
        try await part(of: question, after: position, limit: 1) != nil
    }

    /// The next envelopes behind a position; nil where there is none.
    private func part(
        of question: Question, after position: Int64, limit: Int, _ reached: Reached? = nil
    ) async throws -> Part? {
        let home = domain.home
        var machine = DeliveryMachine(
            limits: .init(envelopes: limit, bytes: Self.partBytes, outputBytes: Self.partBytes, lookAhead: 1),
            version: question.version, only: question.only, after: position)
        var load: PageRequest? = machine.began()
        var envelopes: [Envelope] = []
        while let next = load, envelopes.isEmpty {
            load = nil
            let read = try await home.waiting(device: question.device, next)
            for action in machine.loaded(read, at: domain.time.now()) {
                switch action {
                case .give(let envelope): envelopes.append(envelope)
                case .load(let next): load = next
                case .settle(let id, let outcome): home.settle(id, device: question.device, outcome, code: nil)
                case .end(.deviceGone): throw DeviceRegistrar.credentialInvalid
                case .end(.failed(let fault)): throw fault
                case .caughtUp, .answerOffer: break
                }
            }
        }
        guard envelopes.isEmpty else { return Part(envelopes: envelopes, more: machine.moreWaits) }
        reached?.position.withLock { $0 = machine.position }
        return nil
    }

    // MARK: The text

    private static var opening: ByteBuffer { ByteBuffer(string: #"{"envelopes":["#) }

    private static func add(_ envelopes: [Envelope], to text: inout ByteBuffer, at now: Timestamp) {
        for (index, envelope) in envelopes.enumerated() {
            if index > 0 { text.writeString(",") }
            text.writeBytes(ServerFrame(envelope).written(at: now.milliseconds).text)
        }
    }

    private static func close(_ text: inout ByteBuffer, more: Bool, others: [JSONValue.Member]) {
        text.writeString(#"],"more":\#(more)"#)
        guard !others.isEmpty else {
            text.writeString("}")
            return
        }
        text.writeString(",")
        // Without the bracket that opens them.
        text.writeBytes(JSONValue.object(others).bytes.dropFirst())
    }

    private static let headers: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]

    private static func response(_ text: ByteBuffer) -> Response {
        Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: text))
    }
}
