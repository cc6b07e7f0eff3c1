/// Why a ping of a backend failed, in the codes of the Push Channel.
package enum PingFailure: Int, CaseIterable, Sendable {
    case nameNotResolved = 600
    case noConnection = 601
    case badCertificate = 602
    case noAnswerInTime = 603
    /// The response is not HTTP, is too large, is a redirect, or has a status other than 2xx and 410.
    case invalidAnswer = 604
    /// The backend answered 410: it is running, but no longer has the token.
    case tokenLost = 605
}
