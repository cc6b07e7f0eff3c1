import CarillonBasics

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The content of a sealed message: a value or an error, and its files.
struct SealedPayload: Equatable, Sendable {
    enum Content: Equatable, Sendable {
        case value(ServiceValue)
        case error(ServiceError)
        /// The payload is too long for an envelope and is in an attachment.
        case attached(AttachmentManifest)
    }

    /// The most bytes of a payload.
    static let mostBytes = 1 << 20

    struct File: Equatable, Sendable {
        var path: RelativePath
        var manifest: AttachmentManifest
    }

    var content: Content
    var files: [File] = []

    var bytes: [UInt8] {
        var members: [JSONValue.Member] = []
        switch content {
        case .value(let value): members.append(.init(name: "value", value: value.json))
        case .error(let error): members.append(.init(name: "error", value: error.json))
        case .attached(let manifest): members.append(.init(name: "attached", value: manifest.json))
        }
        members.append(
            .init(
                name: "files",
                value: .array(
                    files.map { file in
                        .object([
                            .init(name: "path", value: .string(file.path.text)),
                            .init(name: "manifest", value: file.manifest.json),
                        ])
                    })))
        return JSONValue.object(members).bytes
    }

    /// - Throws: ``ServiceError`` with ``ServiceError/Code/serviceParametersInvalid`` or ``ServiceError/Code/pathInvalid``.
    init(_ bytes: [UInt8]) throws(ServiceError) {
        guard let json = JSONValue(parsing: bytes), case .array(let list)? = json["files"] else {
            throw ServiceError(.serviceParametersInvalid, "What was sealed is no request and no reply.")
        }
        if let attached = json["attached"] {
            guard let manifest = AttachmentManifest(json: attached), manifest.length <= Self.mostBytes else {
                throw ServiceError(.serviceParametersInvalid, "What was sealed is in no attachment.")
            }
            content = .attached(manifest)
        } else if let value = json["value"] {
            guard let value = ServiceValue(json: value) else {
                throw ServiceError(.serviceParametersInvalid, "What was sent is no value of a service.")
            }
            content = .value(value)
        } else {
            guard let error = json["error"].flatMap({ ServiceError($0) }) else {
                throw ServiceError(.serviceParametersInvalid, "What was sealed has neither a value nor an error.")
            }
            content = .error(error)
        }
        for file in list {
            guard case .string(let name)? = file["path"], let path = RelativePath(name) else {
                throw ServiceError(.pathInvalid, "The name of a file is not one that can be given to it here.")
            }
            guard let manifest = file["manifest"].flatMap({ AttachmentManifest(json: $0) }) else {
                throw ServiceError(.attachmentMissing, "A file came without what is needed to fetch it.")
            }
            files.append(File(path: path, manifest: manifest))
        }
        guard let paths = RelativePath.distinct(files.map(\.path)) else {
            throw ServiceError(.pathInvalid, "The name of a file is the directory of another file.")
        }
        for (index, path) in paths.enumerated() { files[index].path = path }
    }

    init(_ content: Content, files: [File] = []) {
        self.content = content
        self.files = files
    }

    /// The id of the attachment that has the payload, if the payload is too long for an envelope; otherwise none.
    var attachedIDs: [String] {
        guard case .attached(let manifest) = content else { return [] }
        return [manifest.id]
    }

    var fileBytes: Int64 { files.reduce(0) { $0 + $1.manifest.length } }
}

extension AttachmentManifest {
    var json: JSONValue {
        let milliseconds = expiresAt.timeIntervalSince1970 * 1000
        return [
            "id": .string(id), "key": .string(key.base64EncodedString()),
            "length": Int(exactly: length).map(JSONValue.integer) ?? .number(Double(length)),
            "digest": .string(digest.base64EncodedString()),
            "expiresAt": Int(exactly: milliseconds.rounded()).map(JSONValue.integer) ?? .number(milliseconds),
        ]
    }

    /// Returns nil if the value is not a manifest.
    init?(json: JSONValue) {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .millisecondsSince1970
        guard let manifest = try? decoder.decode(AttachmentManifest.self, from: Data(json.bytes)), manifest.isPossible else {
            return nil
        }
        self = manifest
    }
}

extension ServiceError {
    var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init(name: "domain", value: .string(domain)), .init(name: "code", value: .string(code.name)),
            .init(name: "text", value: .string(text)),
        ]
        if let number { members.append(.init(name: "number", value: .integer(number))) }
        if let details { members.append(.init(name: "details", value: details.json)) }
        return .object(members)
    }

    /// Returns nil if the value is not an error.
    init?(_ json: JSONValue) {
        guard case .string(let domain)? = json["domain"], case .string(let code)? = json["code"],
            case .string(let text)? = json["text"]
        else { return nil }
        self.init(Code(code), text)
        self.domain = domain
        if case .integer(let number)? = json["number"] { self.number = number }
        if let details = json["details"] {
            guard let value = ServiceValue(json: details) else { return nil }
            self.details = value
        }
    }
}
