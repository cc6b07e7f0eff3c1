import CarillonBasics
import CarillonWire
import HTTPTypes

/// The headers of a resumable upload (draft-ietf-httpbis-resumable-upload), in the form of the client's version of the draft.
struct UploadHeaders: Equatable {
    /// The versions of the draft that known clients announce, by their interop numbers.
    enum Draft: Int, CaseIterable {
        /// draft-01. The header reports whether the upload is incomplete, instead of complete.
        case three = 3
        /// draft-03.
        case five = 5
        /// draft-04 and 05.
        case six = 6
        /// draft-06 to 08.
        case seven = 7
        /// draft-09 and later.
        case eight = 8
    }

    /// Nil if the client announced no known version. It receives no interim response then.
    var draft: Draft?
    /// Whether the upload is complete with this request; nil if the header is absent.
    var isComplete: Bool?
    var offset: Int64?
    var length: Int64?
    /// The length of this request's body.
    var contentLength: Int64?

    /// - Throws: ``Refusal`` for a header that is present and invalid.
    init(_ fields: HTTPFields) throws(Refusal) {
        draft = fields[.uploadDraft].flatMap(StructuredField.item).flatMap { Int($0) }.flatMap { Draft(rawValue: $0) }
        if draft == .three {
            isComplete = try Self.flag(fields, .uploadIncomplete).map { !$0 }
        } else {
            isComplete = try Self.flag(fields, .uploadComplete)
        }
        offset = try Self.number(fields, .uploadOffset)
        length = try Self.number(fields, .uploadLength)
        contentLength = try fields[.contentLength].map { text throws(Refusal) in
            try Self.number(text, .contentLength)
        }
    }

    private static func flag(_ fields: HTTPFields, _ name: HTTPField.Name) throws(Refusal) -> Bool? {
        guard let text = fields[name] else { return nil }
        switch StructuredField.item(text) {
        case "?1"?: return true
        case "?0"?: return false
        default: throw Refusal(.uploadHeadersInvalid, "\(name) is ?1 or ?0.")
        }
    }

    private static func number(_ fields: HTTPFields, _ name: HTTPField.Name) throws(Refusal) -> Int64? {
        guard let text = fields[name] else { return nil }
        return try number(StructuredField.item(text) ?? "", name)
    }

    private static func number(_ text: String, _ name: HTTPField.Name) throws(Refusal) -> Int64 {
        // Integers of structured fields have at most 15 digits (RFC 9651 section 3.3.1).
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int64(text)
        else { throw Refusal(.uploadHeadersInvalid, "\(name) is a whole number of bytes, not below 0.") }
        return number
    }

    /// Returns the length of the whole upload that this request begins. All lengths in the request must agree.
    func wholeLength() throws(Refusal) -> Int64 {
        // Without another header, the request contains the whole upload.
        let given = isComplete ?? true ? contentLength : nil
        if let given, let length, given != length {
            throw Refusal(
                .uploadLengthInconsistent, "Upload-Length is \(length), and the body that is the whole has \(given) bytes.")
        }
        guard let length = length ?? given else {
            throw Refusal(.uploadLengthMissing, "Say how long the whole is: Upload-Length, in bytes.")
        }
        if let contentLength, contentLength > length {
            throw Refusal(.uploadLengthInconsistent, "The body has \(contentLength) bytes, and the whole \(length).")
        }
        return length
    }

    /// Compares the lengths in a later request with the length of the whole upload.
    func check(part offset: Int64, isLast: Bool, of whole: Int64) throws(Refusal) {
        if let length, length != whole {
            throw Refusal(.uploadLengthInconsistent, "Upload-Length is \(length), and was \(whole) at first.")
        }
        guard let contentLength else { return }
        let end = offset + contentLength
        guard isLast ? end == whole : end <= whole else {
            throw Refusal(
                .uploadLengthInconsistent, "The upload would have \(end) bytes behind this part, and the whole has \(whole)."
            )
        }
    }

    /// Returns the header that reports whether the upload is complete.
    func flag(isComplete: Bool) -> HTTPField {
        draft == .three
            ? HTTPField(name: .uploadIncomplete, value: isComplete ? "?0" : "?1")
            : HTTPField(name: .uploadComplete, value: isComplete ? "?1" : "?0")
    }
}

/// Reads the SHA-256 digest of a body (RFC 9530).
enum DigestField {
    /// - Throws: ``Refusal`` if the field is malformed. Other algorithms are ignored.
    static func sha256(_ fields: HTTPFields, _ name: HTTPField.Name) throws(Refusal) -> [UInt8]? {
        guard let text = fields[name] else { return nil }
        guard let members = StructuredField.dictionary(text) else { throw invalid(name) }
        guard let value = members.last(where: { $0.key == "sha-256" })?.item else { return nil }
        guard value.hasPrefix(":"), let bytes = Base64URL.decodeLeniently(value.dropFirst().dropLast()), bytes.count == 32
        else { throw invalid(name) }
        return bytes
    }

    private static func invalid(_ name: HTTPField.Name) -> Refusal {
        Refusal(.uploadHeadersInvalid, "\(name) is a list of digests (RFC 9530), as sha-256=:…:.")
    }
}

extension HTTPField.Name {
    static let uploadDraft = known("Upload-Draft-Interop-Version")
    static let uploadComplete = known("Upload-Complete")
    static let uploadIncomplete = known("Upload-Incomplete")
    static let uploadOffset = known("Upload-Offset")
    static let uploadLength = known("Upload-Length")
    static let uploadLimit = known("Upload-Limit")
    static let contentDigest = known("Content-Digest")
    static let reprDigest = known("Repr-Digest")
}
