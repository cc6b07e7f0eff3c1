#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// One response to a request of the HTTP API, and the decision whether a Carillon server sent it.
///
/// A proxy, a login page or another program can answer instead of the server. `docs/http-api.md`, "Who answered", lists the signs
/// of a Carillon server.
package struct ServerResponse: Sendable {
    package var status: Int
    package var contentType: String?
    /// The value of `Carillon-Server`.
    package var server: String?
    package var body: Data
    /// Whether the response is to a HEAD request, and so has no body.
    package var isHead: Bool

    package init(status: Int, contentType: String?, server: String?, body: Data, isHead: Bool = false) {
        self.status = status
        self.contentType = contentType
        self.server = server
        self.body = body
        self.isHead = isHead
    }

    /// Whether the response has the header `Carillon-Server`.
    package var isNamed: Bool { !(server ?? "").isEmpty }

    package enum Verdict<Value> {
        /// The server did what the request required.
        case success(Value)
        case refused(ServerRefusal)
        /// The response has no content and no `Carillon-Server`. Only a server that never sends this header can have sent it.
        case unnamed
        /// Another program sent the response. The same request can succeed later.
        case foreign
    }

    /// Decides about a response that has content on success.
    ///
    /// - Parameters:
    ///   - isNameless: Whether the server is known not to send `Carillon-Server`.
    ///   - read: Returns the value of a success in its documented form; nil for any other response.
    package func verdict<Value>(isNameless: Bool = false, reading read: (ServerResponse) -> Value?) -> Verdict<Value> {
        guard isSuccess else { return refusal(isNameless) }
        guard let value = read(self) else { return .foreign }
        return .success(value)
    }

    /// Decides about a response that has status 204 on success.
    ///
    /// - Parameter isNameless: Whether the server is known not to send `Carillon-Server`.
    package func verdictOnNoContent(isNameless: Bool = false) -> Verdict<Void> {
        guard isSuccess else { return refusal(isNameless) }
        guard status == 204 else { return .foreign }
        return isNamed || isNameless ? .success(()) : .unnamed
    }

    /// Returns the body as a type of the API; nil for any other status or body.
    package func json<Body: Decodable>(_ expected: Int, as type: Body.Type) -> Body? {
        status == expected ? try? JSONDecoder().decode(type, from: body) : nil
    }

    private var isSuccess: Bool { (200..<300).contains(status) }

    private func refusal<Value>(_ isNameless: Bool) -> Verdict<Value> {
        let type = contentType?.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard status >= 400, type == ProblemDocument.mediaType else { return .foreign }
        if isHead { return isNamed || isNameless ? .refused(ServerRefusal(status: status)) : .unnamed }
        guard let problem = try? JSONDecoder().decode(ProblemDocument.self, from: body) else { return .foreign }
        let code = ErrorCode(rawValue: problem.code)
        // A server of a later version can return codes that this version does not know.
        guard code != nil || isNamed else { return .foreign }
        return .refused(ServerRefusal(status: status, code: code, problem: problem))
    }
}

/// A refusal that the server sent.
package struct ServerRefusal: Sendable {
    package var status: Int
    /// Nil for a HEAD request, whose response has no body. Also nil for a code of a later version, which ``problem`` contains.
    package var code: ErrorCode?
    package var problem: ProblemDocument?

    package init(status: Int, code: ErrorCode? = nil, problem: ProblemDocument? = nil) {
        self.status = status
        self.code = code
        self.problem = problem
    }

    /// Whether the same request can succeed later, according to the status.
    package var isTemporary: Bool { [408, 425, 429].contains(status) || status >= 500 }

    /// A sentence for the reader.
    package var detail: String { problem?.detail ?? "The server answered with status \(status)." }
}
