import CarillonBasics
import CarillonCore
import CarillonWire
import Crypto
import HTTPTypes
import Hummingbird
import Metrics
import NIOCore
import NIOHTTP1

/// The routes for uploading and fetching attachments in parts (draft-ietf-httpbis-resumable-upload, RFC 9110 section 14). They
/// require a device credential or a sender key.
struct AttachmentRoutes: Sendable {
    let domain: HomeDomain
    let addresses: PublicAddresses
    /// Whether uploaders receive an interim response 104. Some proxies treat it as the final response.
    let announcesResumption: Bool

    /// The path of uploads. The connection uses it to find requests with a streamed body.
    static let path = "/v1/attachments"

    private static let created: QueryParameters = ["app", "readers", "ttl"]

    func add(to routes: Routes) {
        routes.on(.post, "/v1/attachments", query: Self.created, create)
        routes.on(.options, "/v1/attachments", query: Self.created, discover)
        routes.on(.get, "/v1/attachments/:attachment", query: ["app"], fetch)
        routes.on(.patch, "/v1/attachments/:attachment", query: ["app"], append)
        routes.on(.put, "/v1/attachments/:attachment", query: ["app"], refuseParts)
        routes.on(.delete, "/v1/attachments/:attachment", query: ["app"], end)
    }

    private var attachments: Attachments { domain.attachments }

    private func user(_ request: Request, _ context: RouteContext) async throws -> AttachmentUser {
        if let bearer = request.bearer, KeySecret(parsing: bearer) != nil {
            return AttachmentUser(app: try await domain.appOfSender(request).serial, principal: .senders)
        }
        let device = try await domain.deviceOfAnyHome(request, context)
        return AttachmentUser(app: device.app, principal: .device(device.serial))
    }

    /// - Throws: ``HomeFault/moved(to:)`` if another home has the attachment.
    private func id(_ context: RouteContext) throws -> AttachmentID {
        guard let id = AttachmentID(try context.parameters.require("attachment")) else { throw Refusal.attachmentUnknown }
        try domain.home.checkHas(Shard(of: id))
        return id
    }

    // MARK: Uploading

    @Sendable private func discover(_ request: Request, _ context: RouteContext) async throws -> Response {
        Response(status: .noContent, headers: [.uploadLimit: "max-size=\(attachments.limits.fileBytes)"])
    }

    @Sendable private func create(_ request: Request, _ context: RouteContext) async throws -> Response {
        let owner = try await user(request, context)
        try domain.rateLimits.takeUpload(by: owner)
        let headers = try UploadHeaders(request.headers)
        guard headers.offset ?? 0 == 0 else {
            throw Refusal(.uploadHeadersInvalid, "\"Upload-Offset\" must be 0 in the first request of an upload.")
        }
        let length = try headers.wholeLength()
        let digest = try DigestField.sha256(request.headers, .reprDigest)
        let contentDigest = try DigestField.sha256(request.headers, .contentDigest)
        let readers = try await readers(request, owner)
        let lifetime = try request.number(
            "ttl", in: 60...Int(attachments.limits.longestLifetimeSeconds),
            default: Int(attachments.limits.defaultLifetimeSeconds))
        let fingerprint = "\(length) \(lifetime) \(readers.map(\.number)) \(digest ?? [])"
        let idempotency = try request.idempotencyKey().map { key in
            (key: Array(SHA256.hash(data: Array(key.utf8))), fingerprint: Array(SHA256.hash(data: Array(fingerprint.utf8))))
        }
        let begun: Attachment
        do {
            begun = try await attachments.begin(
                owner, length: length, digest: digest, readers: readers, lifetimeSeconds: Int64(lifetime),
                idempotency: idempotency)
        } catch let refusal as Refusal where refusal.code == .attachmentTooLarge {
            var response = Response(refusal: refusal)
            response.headers[.uploadLimit] = "max-size=\(attachments.limits.fileBytes)"
            return response
        }
        if begun.isComplete { return answer(begun, headers, status: .created) }
        // The request is a repetition whose client needs the present offset.
        if begun.synced > 0 { return answer(begun, headers, status: .created) }
        inform(headers, context, [.location: addresses.attachment(begun.id)], limit: begun)
        let isLast = headers.isComplete ?? true
        do {
            let attachment = try await attachments.append(
                to: begun.id, of: owner, at: 0, contentDigest: contentDigest, isLast: isLast
            ) { upload in
                try await receive(request, into: upload, headers, context, isLast: isLast)
            }
            return answer(attachment, headers, status: .created)
        } catch {
            // Without an identifier, the client cannot resume the upload.
            if headers.draft == nil, idempotency == nil { try? await attachments.end(begun.id, by: owner) }
            throw error
        }
    }

    /// Returns the readers of an attachment from the parameter `readers`: a list of devices, or `senders` for all sender keys of
    /// the app.
    private func readers(_ request: Request, _ owner: AttachmentUser) async throws -> [AttachmentPrincipal] {
        let names = (request.uri.queryParameters["readers"] ?? "").split(separator: ",")
        guard (1...attachments.limits.readers).contains(names.count) else {
            throw Refusal(
                .parameterInvalid,
                "\"readers\" must list 1 to \(attachments.limits.readers) device IDs, or \"senders\", separated by commas."
            )
        }
        var readers: [AttachmentPrincipal] = []
        for name in names {
            if name == "senders" {
                readers.append(.senders)
                continue
            }
            let device = try await domain.devices.find(try DeviceID.checked(String(name))) { device in
                try await mayName(device, owner)
            }
            readers.append(.device(device.serial))
        }
        return readers
    }

    /// Whether an owner can add a device as a reader. A sender can add devices of its app. A device can also add devices of other
    /// apps in the realm, because it can exchange service requests with them.
    private func mayName(_ device: Device, _ owner: AttachmentUser) async throws -> Bool {
        if device.app == owner.app { return true }
        guard owner.principal != .senders, let realm = try await domain.services.realm(of: owner.app) else { return false }
        return try await domain.services.realm(of: device.app) == realm
    }

    @Sendable private func append(_ request: Request, _ context: RouteContext) async throws -> Response {
        let owner = try await user(request, context)
        let id = try id(context)
        let headers = try UploadHeaders(request.headers)
        guard let offset = headers.offset else {
            throw Refusal(.uploadHeadersInvalid, "Set \"Upload-Offset\" to the offset of the body in the upload.")
        }
        let isLast: Bool
        switch (headers.isComplete, headers.draft) {
        case (let notified?, _): isLast = notified
        case (nil, .three), (nil, .five), (nil, .six): isLast = true
        case (nil, _):
            throw Refusal(
                .uploadHeadersInvalid,
                "Set \"Upload-Complete\" to ?1 if the body is the last part of the upload, and to ?0 if not.")
        }
        if headers.draft != .three, headers.draft != .five {
            let type = request.headers[.contentType]?.prefix { $0 != ";" && $0 != " " }.lowercased()
            guard type == "application/partial-upload" else {
                throw Refusal(
                    .uploadTypeInvalid, "The \"Content-Type\" of an upload part must be application/partial-upload.")
            }
        }
        let contentDigest = try DigestField.sha256(request.headers, .contentDigest)
        do {
            let attachment = try await attachments.append(
                to: id, of: owner, at: offset, contentDigest: contentDigest, isLast: isLast
            ) { upload in
                try await receive(request, into: upload, headers, context, isLast: isLast)
            }
            let earlier = headers.draft.map { $0.rawValue < UploadHeaders.Draft.seven.rawValue } ?? false
            return answer(attachment, headers, status: isLast ? .ok : earlier ? .created : .noContent)
        } catch let mismatch as UploadOffsetMismatch {
            return Self.answer(mismatch, headers)
        } catch let refusal as Refusal where refusal.code == .uploadCompleted {
            var response = Response(refusal: refusal)
            response.headers[fields: headers.flag(isComplete: true).name] = [headers.flag(isComplete: true)]
            return response
        }
    }

    /// Rejects requests such as those of `curl -T FILE -C -`, whose parts would otherwise be stored as whole files.
    @Sendable private func refuseParts(_ request: Request, _ context: RouteContext) throws -> Response {
        throw Refusal(
            .requestInvalid, "Continue an upload with PATCH and \"Upload-Offset\", not with PUT and \"Content-Range\".")
    }

    private func receive(
        _ request: Request, into upload: Upload, _ headers: UploadHeaders, _ context: RouteContext, isLast: Bool
    ) async throws {
        try headers.check(part: upload.offset, isLast: isLast, of: upload.attachment.length)
        for try await part in request.body where try await upload.write(part) {
            guard headers.draft != .three else { continue }
            inform(headers, context, [.uploadOffset: String(upload.attachment.synced)], limit: nil)
        }
    }

    /// Sends an interim response 104, unless the client announced no version of the draft.
    private func inform(_ headers: UploadHeaders, _ context: RouteContext, _ fields: HTTPFields, limit: Attachment?) {
        guard announcesResumption, let draft = headers.draft else { return }
        var fields = fields
        fields[.uploadDraft] = String(draft.rawValue)
        if let limit { fields[.uploadLimit] = self.limit(of: limit, draft) }
        context.inform?(HTTPResponseStatus(statusCode: 104, reasonPhrase: "Upload Resumption Supported"), fields)
    }

    /// Returns nil for versions of the draft without this header.
    private func limit(of attachment: Attachment, _ draft: UploadHeaders.Draft?) -> String? {
        if draft == .three || draft == .five { return nil }
        let seconds = max(0, (attachment.expiresAt.milliseconds - domain.time.now().milliseconds) / 1000)
        let name = draft == .six ? "expires" : "max-age"
        return "max-size=\(attachments.limits.fileBytes), \(name)=\(seconds)"
    }

    private func answer(_ attachment: Attachment, _ headers: UploadHeaders, status: HTTPResponse.Status) -> Response {
        var response: Response
        if attachment.isComplete {
            let body: JSONValue = [
                "id": .string(attachment.id.description),
                "length": .integer(Int(attachment.length)),
                "expiresAt": .string(Timestamp3339.text(attachment.expiresAt.milliseconds)),
            ]
            response = Response(status: status, text: body.bytes, type: "application/json")
        } else {
            response = Response(status: status)
            response.headers[.uploadLimit] = limit(of: attachment, headers.draft)
        }
        if status == .created { response.headers[.location] = addresses.attachment(attachment.id) }
        response.headers[.uploadOffset] = String(attachment.synced)
        response.headers[fields: headers.flag(isComplete: true).name] = [headers.flag(isComplete: attachment.isComplete)]
        return response
    }

    /// Returns the problem document that the draft defines, with the values that the client needs in order to continue.
    private static func answer(_ mismatch: UploadOffsetMismatch, _ headers: UploadHeaders) -> Response {
        let code = ErrorCode.uploadOffsetMismatch
        let expected = mismatch.attachment.synced
        let problem: JSONValue = [
            "type": .string("https://iana.org/assignments/http-problem-types#mismatching-upload-offset"),
            "title": .string(code.title), "status": .integer(code.status), "code": .string(code.rawValue),
            "detail": .string("The upload has \(expected) bytes; continue at this offset."),
            "expected-offset": .integer(Int(expected)), "provided-offset": .integer(Int(mismatch.provided)),
        ]
        // Creating this response counts the refusal in the metrics.
        var response = Response(refusal: Refusal(code, ""))
        response.body = ResponseBody(byteBuffer: ByteBuffer(bytes: problem.bytes))
        response.headers[.contentLength] = nil
        response.headers[.uploadOffset] = String(expected)
        response.headers[fields: headers.flag(isComplete: false).name] = [headers.flag(isComplete: false)]
        return response
    }

    // MARK: Fetching

    @Sendable private func fetch(_ request: Request, _ context: RouteContext) async throws -> Response {
        let user = try await user(request, context)
        let id = try id(context)
        if context.isHead { return try await state(of: id, for: user, request) }
        let (attachment, file, transfer) = try await attachments.open(id, for: user)
        let tag = "\"\(id)\""
        var headers: HTTPFields = [
            .eTag: tag, .acceptRanges: "bytes", .cacheControl: "private, no-transform",
            .contentType: "application/octet-stream", .xContentTypeOptions: "nosniff",
        ]
        if let known = request.headers[.ifNoneMatch],
            known == "*"
                || known.split(separator: ",").contains(where: {
                    let known = $0.drop { $0 == " " }
                    return (known.hasPrefix("W/") ? known.dropFirst(2) : known).prefix(tag.count) == tag
                })
        {
            return Response(status: .notModified, headers: headers)
        }
        // A part of another file is useless, so the whole file is sent.
        let isSame = request.headers[.ifRange].map { $0 == tag } ?? true
        let part: Range<Int64>
        let status: HTTPResponse.Status
        switch RangeHeader(isSame ? request.headers[.range] : nil, length: attachment.length) {
        case .whole: (part, status) = (0..<attachment.length, .ok)
        case .part(let asked):
            (part, status) = (asked, .partialContent)
            headers[.contentRange] = "bytes \(asked.lowerBound)-\(asked.upperBound - 1)/\(attachment.length)"
        case .unsatisfiable:
            var response = Response(
                refusal: Refusal(
                    .rangeInvalid, "The attachment has \(attachment.length) bytes; \"Range\" must begin before its end."))
            response.headers[.contentRange] = "bytes */\(attachment.length)"
            return response
        }
        headers[.contentLength] = String(part.count)
        let body = ResponseBody { writer in
            // The transfer is counted until the body has been sent.
            defer { withExtendedLifetime(transfer) {} }
            var parts = FileParts(of: file, part)
            while let bytes = try await parts.next() {
                try await writer.write(ByteBuffer(bytes: bytes))
                bytesSent.increment(by: bytes.count)
            }
            try await writer.finish(nil)
        }
        return Response(status: status, headers: headers, body: body)
    }

    /// Returns the progress of an upload for its owner, or the existence of the attachment for its readers.
    private func state(of id: AttachmentID, for user: AttachmentUser, _ request: Request) async throws -> Response {
        let headers = try UploadHeaders(request.headers)
        let attachment: Attachment
        do {
            attachment = try await attachments.state(id, of: user)
        } catch let refusal as Refusal where refusal.code == .attachmentUnknown {
            attachment = try await attachments.fetchable(id, for: user)
        }
        var response = Response(status: .noContent)
        response.headers = [
            .uploadOffset: String(attachment.synced), .uploadLength: String(attachment.length), .cacheControl: "no-store",
        ]
        response.headers[.uploadLimit] = limit(of: attachment, headers.draft)
        let flag = headers.flag(isComplete: attachment.isComplete)
        response.headers[fields: flag.name] = [flag]
        if attachment.isComplete {
            response.headers[.eTag] = "\"\(id)\""
            response.headers[.acceptRanges] = "bytes"
        }
        return response
    }

    // MARK: Ending

    @Sendable private func end(_ request: Request, _ context: RouteContext) async throws -> Response {
        try await attachments.end(try id(context), by: try await user(request, context))
        return Response(status: .noContent)
    }
}

/// Reads a file in parts. The next part is read while the peer receives the last one.
private struct FileParts {
    private let file: any ReadableFile
    private let end: Int64
    private var offset: Int64
    private var ahead: Task<[UInt8], any Error>?

    private static let bytes = Int64(AnswerMemory.partBytes)

    init(of file: any ReadableFile, _ range: Range<Int64>) {
        self.file = file
        offset = range.lowerBound
        end = range.upperBound
        ahead = read()
    }

    /// Returns nil after the last part.
    mutating func next() async throws -> [UInt8]? {
        guard let bytes = try await ahead?.value else { return nil }
        // The end of the connection shows the client that the file is incomplete.
        guard !bytes.isEmpty else {
            throw StoreFault(.damaged, "the file of an attachment is shorter than its stored length")
        }
        offset += Int64(bytes.count)
        ahead = read()
        return bytes
    }

    private func read() -> Task<[UInt8], any Error>? {
        guard offset < end else { return nil }
        return Task { [file, offset, end] in
            try await file.read(at: offset, count: Int(min(Self.bytes, end - offset)))
        }
    }
}

private let bytesSent = ServerMetric.attachmentBytesSent.counter()

extension ByteBuffer: FileBytes {
    package var count: Int { readableBytes }
    package func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        try withUnsafeReadableBytes(body)
    }
}
