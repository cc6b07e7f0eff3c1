import CarillonBasics
import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import Synchronization

/// Reads a device's inbox for one request, which can wait for a while if the inbox is empty.
///
/// The answer is written in parts: the next part is read from the store when the client has received the last one. Its form is
/// `{"envelopes":[…],"more":…}`. Each envelope has the form of its socket frame.
struct InboxPoll: Sendable {
    let domain: HomeDomain
    let readiness: Readiness

    struct Question: Sendable {
        var device: DeviceSerial
        /// The largest number of envelopes. If it is 0, the inbox is not read.
        var max: Int
        /// The version of Carillon's extension that the client supports.
        var version: Int
        /// The kinds of envelopes that the client requested; nil: all.
        var only: Set<EnvelopeKind>?
    }

    /// Returns the members of the answer after the envelopes.
    ///
    /// - Parameter last: The position of the last envelope; nil if there is no envelope.
    typealias Others = @Sendable (_ last: Int64?) throws -> [JSONValue.Member]

    private struct Part: Sendable {
        var envelopes: [Envelope]
        /// Whether more envelopes can follow.
        var more: Bool
    }

    /// The bytes that one part reads from the store. Their text is a third longer.
    private static let partBytes = AnswerMemory.partBytes * 3 / 4
    /// An answer ends after the part that reaches this size.
    private static let answerBytes = 4 << 20

    func answer(
        _ question: Question, waitSeconds: Int = 0, in context: RouteContext, others: @escaping Others = { _ in [] }
    ) async throws -> Response {
        guard question.max > 0 else { return try Self.empty(others) }
        guard waitSeconds > 0, let usage = context.usage else {
            return try await look(question, context.usage, others, from: Reached()) ?? Self.empty(others)
        }
        // The poll is registered before the first read, so that no envelope between the read and the wait is missed.
        let waiting = WaitingPoll(
            of: question.device, at: domain.home, waitSeconds: waitSeconds,
            isHead: context.isHead)
        let reached = Reached()
        do {
            let found = try await look(question, usage, others, from: reached)
            // A poll that begins while the server ends all polls is not notified.
            if found != nil || readiness.isStopping {
                waiting.end()
                return try found ?? Self.empty(others)
            }
        } catch {
            waiting.end()
            throw error
        }
        waiting.wait { [self] isLast in
            if let found = try await look(question, usage, others, from: reached) { return found }
            return try isLast ? Self.empty(others) : nil
        }
        usage.park(waiting)
        return Response(status: .ok)
    }

    /// Returns an answer without envelopes.
    static func empty(_ others: Others) throws -> Response {
        var text = opening
        close(&text, more: false, others: try others(nil))
        return response(text)
    }

    /// The position up to which the inbox was read and no wanted envelope was found.
    private final class Reached: Sendable {
        let position = Mutex<Int64>(0)
    }

    /// Returns nil if there is no envelope.
    private func look(
        _ question: Question, _ usage: ConnectionUsage?, _ others: @escaping Others, from reached: Reached
    ) async throws -> Response? {
        let start = reached.position.withLock { $0 }
        let found = try await domain.answers.part(for: usage?.address, bytes: { Self.needed($0, by: question) }) {
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
                usage?.keep(place)
            }
            return Self.response(text)
        }
        try domain.answers.admitLarge(place, of: question.device)
        return Response(
            status: .ok, headers: Self.headers,
            body: ResponseBody { [self] writer in
                defer { place.release() }
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

    /// Returns the memory that an answer needs if it begins with this part: its envelopes, their text, and the data that waits
    /// for the peer.
    private static func needed(_ first: Part, by question: Question) -> Int {
        if hasParts(first, of: question) { return AnswerMemory.bytesOfPart }
        let bytes = first.envelopes.reduce(0) { $0 + $1.byteCount }
        return bytes <= AnswerMemory.uncountedBytes ? bytes : min(3 * bytes, AnswerMemory.bytesOfPart)
    }

    /// Whether a wanted envelope follows a position.
    private func waits(_ question: Question, after position: Int64) async throws -> Bool {
        try await part(of: question, after: position, limit: 1) != nil
    }

    /// Returns the next envelopes after a position; nil if no envelopes wait after the position.
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
                case .deliver(let envelope): envelopes.append(envelope)
                case .load(let next): load = next
                case .finish(let id, let outcome): home.finish(id, device: question.device, outcome, code: nil)
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
        // Without the opening bracket.
        text.writeBytes(JSONValue.object(others).bytes.dropFirst())
    }

    private static let headers: HTTPFields = [.contentType: "application/json", .cacheControl: "no-store"]

    private static func response(_ text: ByteBuffer) -> Response {
        Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: text))
    }
}
