import CarillonCore
import CarillonWire
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1

// Conversions of requests and responses that are passed between the process that accepted a request and the home that runs it.

extension HomeRequest {
    /// - Parameter address: The address of the client.
    init(_ request: Request, body: HomeBody, _ context: RouteContext, from address: NetworkAddress?) {
        self.init(
            method: request.method.rawValue, path: request.head.path ?? "/",
            fields: request.headers.map { field in (field.name.canonicalName, field.value) }, body: body, address: address,
            isHead: context.isHead)
    }

    /// The head of the request; nil if its method has no valid name.
    var head: HTTPRequest? {
        guard let method = HTTPRequest.Method(rawValue: method) else { return nil }
        var head = HTTPRequest(method: method, scheme: nil, authority: nil, path: path)
        head.headerFields = HTTPFields(fields)
        return head
    }
}

extension HTTPFields {
    init(_ fields: [(name: String, value: String)]) {
        self.init()
        for field in fields {
            if let name = HTTPField.Name(field.name) { append(HTTPField(name: name, value: field.value)) }
        }
    }
}

extension HomeBody {
    /// - Throws: ``Refusal`` if the body is incomplete. A streamed body is not read.
    init(_ body: RequestBody, _ context: RouteContext) async throws {
        guard !context.hasStreamedBody else {
            self = .parts(body.map { part in Array(buffer: part) })
            return
        }
        do {
            self = .whole(Array(buffer: try await body.collect(upTo: .max)))
        } catch let fault as NIOTooManyBytesError {
            self = .tooLarge(limit: fault.maxBytes ?? 0)
        } catch {
            throw Refusal(.bodyIncomplete, "The body ended before it was whole; nothing was done.")
        }
    }

    init(_ body: RequestMachine.Body) {
        switch body {
        case .whole(let bytes): self = .whole(Array(buffer: bytes))
        case .tooLarge(let limit): self = .tooLarge(limit: limit)
        }
    }
}

extension RequestBody {
    init(_ body: HomeBody) {
        switch body {
        case .whole(let bytes): self.init(RequestMachine.Body.whole(ByteBuffer(bytes: bytes)))
        case .parts(let parts): self.init(asyncSequence: Buffers(parts: parts))
        case .tooLarge(let limit): self.init(RequestMachine.Body.tooLarge(limit: limit))
        case .none: self.init(buffer: ByteBuffer())
        }
    }

    private struct Buffers: AsyncSequence, Sendable {
        let parts: any AsyncSequence<[UInt8], any Error> & Sendable

        struct Iterator: AsyncIteratorProtocol {
            var parts: any AsyncIteratorProtocol<[UInt8], any Error>

            mutating func next(isolation actor: isolated (any Actor)?) async throws -> ByteBuffer? {
                try await parts.next(isolation: actor).map { part in ByteBuffer(bytes: part) }
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(parts: parts.makeAsyncIterator()) }
    }
}

extension Response {
    init(_ response: HomeResponse) {
        let body: ResponseBody
        switch response.body {
        case .whole(let bytes): body = ResponseBody(byteBuffer: ByteBuffer(bytes: bytes))
        case .parts(let parts):
            body = ResponseBody { writer in
                for try await part in parts { try await writer.write(ByteBuffer(bytes: part)) }
                try await writer.finish(nil)
            }
        case .none(let length): body = ResponseBody(contentLength: length) { writer in try await writer.finish(nil) }
        // No home returns this case.
        case .tooLarge: body = ResponseBody()
        }
        self.init(status: .init(code: response.status), headers: HTTPFields(response.fields), body: body)
    }
}

extension HTTPAnswer {
    /// Converts a response that is complete.
    init(_ response: HomeResponse) {
        let body: [UInt8] = if case .whole(let bytes) = response.body { bytes } else { [] }
        self.init(
            status: HTTPResponseStatus(statusCode: response.status),
            headers: HTTPHeaders(response.fields.map { ($0.name, $0.value) }), body: ByteBuffer(bytes: body))
    }
}

extension HomeResponse {
    init(_ answer: HTTPAnswer) {
        self.init(
            status: Int(answer.status.code), fields: answer.headers.map { ($0.name, $0.value) },
            body: .whole(Array(buffer: answer.body)))
    }

    /// - Parameter body: The body of the response.
    init(_ response: Response, body: HomeBody) {
        self.init(
            status: response.status.code, fields: response.headers.map { ($0.name.rawName, $0.value) }, body: body)
    }
}
