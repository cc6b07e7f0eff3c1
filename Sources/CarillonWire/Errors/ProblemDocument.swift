import CarillonBasics

/// The body of every refusal (RFC 9457), of type `application/problem+json`.
package struct ProblemDocument: Codable, Equatable, Sendable {
    package static let mediaType = "application/problem+json"

    package var type: String
    package var title: String
    package var status: Int
    package var detail: String
    /// The stable name of the fault in the catalogue.
    package var code: String
    /// The code of the app's own server, which refused it.
    package var appCode: String?

    package init(_ refusal: Refusal) {
        type = "urn:carillon:error:\(refusal.code.rawValue)"
        title = refusal.code.title
        status = refusal.code.status
        detail = refusal.detail
        code = refusal.code.rawValue
        appCode = refusal.appCode
    }

    /// The document as JSON. Each document can be written.
    package var bytes: [UInt8] {
        JSONWriter.object { writer in
            writer.member("appCode", appCode)
            writer.member("code", code)
            writer.member("detail", detail)
            writer.member("status", status)
            writer.member("title", title)
            writer.member("type", type)
        }
    }
}
