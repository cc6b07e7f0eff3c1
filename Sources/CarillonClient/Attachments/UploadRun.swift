import CarillonBasics
import CarillonWire

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Uploads a sealed file: creates the upload once, requests its offset after each lost connection, and continues from there
/// (draft-ietf-httpbis-resumable-upload).
struct UploadRun: Sendable {
    let id: String
    let folder: TransferFolder
    let server: TransferAPI

    private static let draft = (name: "Upload-Draft-Interop-Version", value: "8")

    /// Whether the upload is not complete or not confirmed.
    var isUnfinished: Bool { folder.ids(.upload).contains(id) }

    func run(_ moved: @escaping @Sendable (Int64) -> Void) async throws -> AttachmentManifest {
        let known = try folder.read(TransferFolder.UploadState.self, .upload, of: id)
        guard let state = known, state.isGivenUp != true else {
            throw PushError(.attachmentGone, "The upload is done, or was given up.")
        }
        if let manifest = state.manifest {
            folder.removeSealed(id)
            return manifest
        }
        let file = try DiskFile(folder.sealed(id), .reading)
        let length = ChunkSeal.sealedLength(of: state.length)
        guard try file.size() == length else {
            throw PushError(.storageDamaged, "The sealed file of an upload is not whole.")
        }
        let whole = try await upload(file, length, state, moved)
        let manifest = AttachmentManifest(
            id: whole.id, key: state.key, length: state.length, digest: state.digest, expiresAt: whole.expiresAt)
        var done = state
        (done.location, done.manifest) = (whole.location, manifest)
        try folder.write(done, .upload, of: id)
        folder.removeSealed(id)
        return manifest
    }

    private struct Whole {
        var id: String
        var expiresAt: Date
        var location: String
    }

    private func upload(
        _ file: DiskFile, _ length: Int64, _ known: TransferFolder.UploadState, _ moved: @escaping @Sendable (Int64) -> Void
    ) async throws -> Whole {
        var state = known
        var offset: Int64?
        var furthest: Int64 = 0
        return try await server.persist { () async throws -> TransferAPI.Step<Whole> in
            guard let location = state.location else {
                switch try await begin(state, length) {
                case .later(let hint): return .later(hint: hint, hasMoved: false)
                case .refused(let refusal):
                    // The device may receive another credential later, so 401 and 403 do not remove the upload.
                    if ![401, 403].contains(refusal.status) { folder.remove(.upload, id) }
                    throw PushError(refusal)
                case .success(let begun):
                    state.location = begun.location
                    try folder.write(state, .upload, of: id)
                    offset = begun.offset
                    return .next(hasMoved: false)
                }
            }
            guard let start = offset else {
                let outcome = try await server.send(
                    "HEAD", location, [Self.draft],
                    expecting: .content { (answer: WebAnswer) -> Int64? in
                        guard let place = Self.offset(in: answer), (0...length).contains(place) else { return nil }
                        return place
                    })
                switch outcome {
                case .later(let hint): return .later(hint: hint, hasMoved: false)
                case .refused(let refusal) where refusal.status == 404:
                    // The server removed the upload, which had expired. The sealed file is uploaded again from its beginning.
                    state.location = nil
                    try folder.write(state, .upload, of: id)
                    return .later(hint: nil, hasMoved: false)
                case .refused(let refusal): throw PushError(refusal)
                case .success(let place):
                    offset = place
                    let hasMoved = place > furthest
                    furthest = max(furthest, place)
                    return .next(hasMoved: hasMoved)
                }
            }
            // The offset is requested again after this request, also if the request fails.
            offset = nil
            moved(start)
            let headers = [
                Self.draft, ("Upload-Offset", String(start)), ("Upload-Complete", "?1"),
                ("Content-Type", "application/partial-upload"),
            ]
            let outcome = try await server.send(
                "PATCH", location, headers, body: (file, start..<length), sent: moved,
                expecting: .content { Self.whole($0, at: location) })
            switch outcome {
            case .later(let hint): return .later(hint: hint, hasMoved: false)
            case .success(let whole): return .done(whole)
            // Another request changed the upload, or is running: the offset is requested again.
            case .refused(let refusal) where [404, 409].contains(refusal.status): return .later(hint: nil, hasMoved: false)
            case .refused(let refusal): throw PushError(refusal)
            }
        }
    }

    struct Begun {
        var location: String
        var offset: Int64
    }

    func begin(_ state: TransferFolder.UploadState, _ length: Int64) async throws -> ServerAPI.Outcome<Begun> {
        let readers = state.readers.joined(separator: ",")
        let headers: [(name: String, value: String)] = [
            Self.draft, ("Upload-Complete", "?0"), ("Upload-Length", String(length)), ("Idempotency-Key", id),
            ("Repr-Digest", "sha-256=:\(state.digest.base64EncodedString()):"),
        ]
        let path = "/v1/attachments?readers=\(readers)&ttl=\(state.lifetimeSeconds)"
        return try await server.send(
            "POST", path, headers,
            expecting: .content { (answer: WebAnswer) -> Begun? in
                guard answer.status == 201, let location = Self.path(in: answer), let offset = Self.offset(in: answer)
                else { return nil }
                return Begun(location: location, offset: offset)
            })
    }

    /// Returns the path of an upload below the address of the server that this client was configured with.
    ///
    /// `Location` is a whole address, or a path with or without the path of the server's own address. Only the upload's id is
    /// used, so that the credential is sent to no other host.
    static func path(in answer: WebAnswer) -> String? {
        guard let location = answer.headers["location"] else { return nil }
        let start = location.lowercased()
        guard start.hasPrefix("/") || start.hasPrefix("http://") || start.hasPrefix("https://") else { return nil }
        let parts = location.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
        guard let id = parts.last, parts.count > 2, parts[parts.count - 2] == "attachments", parts[parts.count - 3] == "v1"
        else { return nil }
        return "/v1/attachments/\(id)"
    }

    private static func offset(in answer: WebAnswer) -> Int64? {
        answer.headers["upload-offset"].flatMap(StructuredField.item).flatMap { Int64($0) }
    }

    /// Returns the complete upload; nil if the response does not describe one.
    private static func whole(_ answer: WebAnswer, at location: String) -> Whole? {
        guard answer.status == 200, let json = JSONValue(parsing: Array(answer.body)), case .string(let id)? = json["id"],
            case .string(let text)? = json["expiresAt"], let end = Timestamp3339.milliseconds(text)
        else { return nil }
        return Whole(id: id, expiresAt: Date(timeIntervalSince1970: Double(end) / 1000), location: location)
    }

    /// Removes the state of a confirmed upload.
    func removeState() { folder.remove(.upload, id) }

    /// Records that the upload is cancelled, for this run and the next ones. The sealed file is removed at once.
    ///
    /// - Returns: The state for ``remove(_:first:)``; nil if there is no such upload.
    func cancel() throws(PushError) -> TransferFolder.UploadState? {
        guard var state = try folder.read(TransferFolder.UploadState.self, .upload, of: id) else { return nil }
        state.isGivenUp = true
        do throws(PushError) {
            try folder.write(state, .upload, of: id)
            folder.removeSealed(id)
        } catch {
            // The disk is full: only this run can remove the upload from the server.
            folder.remove(.upload, id)
        }
        return state
    }
}
