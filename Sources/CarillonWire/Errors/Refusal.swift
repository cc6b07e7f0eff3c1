/// One request refused: the entry of the catalogue, and a sentence that says what would be right.
package struct Refusal: Error, Equatable, Sendable {
    package var code: ErrorCode
    /// What was wrong, where, and what would be right. Never holds a token, a key or a payload.
    package var detail: String
    /// When the same request may succeed, in seconds.
    package var retryAfterSeconds: Int?
    /// What the app's own server calls it, which refused it.
    package var appCode: String?

    package init(_ code: ErrorCode, _ detail: String, retryAfterSeconds: Int? = nil) {
        self.code = code
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }
}
