import CarillonBasics
import CarillonWire
import NIOCore
import NIOHTTP1
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A request whose body is a part of a file, or whose response is a file.
struct FileRequest: Sendable {
    var method: String
    var address: WebAddress
    var bearer: String
    var headers: [(name: String, value: String)] = []
    /// The part of a file that is sent.
    var body: (file: DiskFile, range: Range<Int64>)?
    /// Whether the body of a response is the requested file or a part of it.
    var isFile: @Sendable (WebAnswer) -> Bool = { _ in false }
}

/// Transfers files to and from a server. A transfer pauses while either side pauses.
protocol FileTransport: WebTransport {
    /// Sends one request, on a connection of its own.
    ///
    /// - Parameters:
    ///   - sent: Called with the offset up to which the file is written to the connection. The server may have received less.
    ///   - received: Called with the bytes of a response that is the file.
    func exchange(
        _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
        received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
    ) async throws -> WebAnswer
}

extension NIOTransport: FileTransport {
    private typealias Exchange = NIOAsyncChannel<HTTPClientResponsePart, HTTPClientRequestPart>

    /// The longest time without any transferred bytes.
    private static let stall = Duration.seconds(60)
    private static let partBytes = 256 << 10
    private static let answerBytes = 64 << 10

    func exchange(
        _ request: FileRequest, sent: @escaping @Sendable (Int64) -> Void,
        received: @escaping @Sendable (WebAnswer, Data) async throws(PushError) -> Void
    ) async throws -> WebAnswer {
        let progress = ConnectProgress()
        do {
            let channel: Exchange = try await open(request.address, progress) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers(leftOverBytesStrategy: .dropBytes)
                    guard progress.upgraded() else { throw TransportFault(.timeOut, nil) }
                    return try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
            let movement = Movement()
            return try await channel.executeThenClose { inbound, outbound in
                try await withThrowingTaskGroup(of: WebAnswer?.self) { group in
                    group.addTask {
                        do {
                            try await Self.send(request, to: outbound, movement, sent)
                        } catch let error where !(error is PushError) {
                            // A server that has responded may stop reading. The response, or the end of the connection, is read
                            // in any case.
                        }
                        return nil
                    }
                    group.addTask { try await Self.read(inbound, request, movement, received) }
                    group.addTask {
                        while movement.age < Self.stall { try await Task.sleep(for: .seconds(5)) }
                        throw TransportFault(.timeOut, nil)
                    }
                    defer { group.cancelAll() }
                    while let answer = try await group.next() {
                        if let answer { return answer }
                    }
                    throw ChannelError.inputClosed
                }
            }
        } catch let error as PushError {
            throw error
        } catch {
            throw fault(error, progress)
        }
    }

    private static func send(
        _ request: FileRequest, to outbound: NIOAsyncChannelOutboundWriter<HTTPClientRequestPart>, _ movement: Movement,
        _ sent: (Int64) -> Void
    ) async throws {
        var headers: HTTPHeaders = [
            "Host": request.address.authority, "Connection": "close", "Authorization": "Bearer \(request.bearer)",
        ]
        for (name, value) in request.headers { headers.add(name: name, value: value) }
        let range = request.body?.range ?? 0..<0
        if request.method != "GET", request.method != "HEAD" {
            headers.add(name: "Content-Length", value: String(range.count))
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: request.address.target, headers: headers)
        try await outbound.write(.head(head))
        if let (file, range) = request.body {
            var offset = range.lowerBound
            while offset < range.upperBound {
                let place = offset
                let part = try await DiskFile.work { () throws(PushError) in
                    try file.read(at: place, count: Int(min(Int64(partBytes), range.upperBound - place)))
                }
                guard !part.isEmpty else { throw PushError(.fileInvalid, "A file is shorter than it was.") }
                try await outbound.write(.body(.byteBuffer(ByteBuffer(bytes: part))))
                offset += Int64(part.count)
                movement.happened()
                sent(offset)
            }
        }
        try await outbound.write(.end(nil))
    }

    private static func read(
        _ inbound: NIOAsyncChannelInboundStream<HTTPClientResponsePart>, _ request: FileRequest, _ movement: Movement,
        _ received: (WebAnswer, Data) async throws(PushError) -> Void
    ) async throws -> WebAnswer {
        var answer: WebAnswer?
        for try await part in inbound {
            movement.happened()
            switch part {
            case .head(let head):
                answer = WebAnswer(head)
            case .body(let bytes):
                guard var known = answer else { continue }
                let data = Data(bytes.readableBytesView)
                if request.isFile(known) {
                    try await received(known, data)
                } else if known.body.count + data.count <= answerBytes {
                    known.body.append(data)
                    answer = known
                }
            case .end:
                if let answer { return answer }
            }
        }
        throw ChannelError.inputClosed
    }

    /// The time of the last transferred bytes.
    private final class Movement: Sendable {
        private let last = Mutex(ContinuousClock.now)
        var age: Duration { last.withLock { $0.duration(to: .now) } }
        func happened() { last.withLock { $0 = .now } }
    }
}
