/// Why a back end's ping address did not answer as it should, in the numbers of the Push Channel.
package enum PingFailure: Int, CaseIterable, Sendable {
    case nameNotResolved = 600
    case noConnection = 601
    case badCertificate = 602
    case noAnswerInTime = 603
    /// The answer is no HTTP, too large, a redirect, or of a status other than 2xx and 410.
    case invalidAnswer = 604
    /// The back end answered 410: it is there, and does not know the token any more.
    case tokenLost = 605
}
