package import CarillonCore
import NIOHTTP1

/// Fetches key sets.
package struct UserKeyFetcher: Sendable {
    package enum Answer: Sendable {
        case found([UInt8])
        /// The reason, for the operator's log, and the delay that the response contained.
        case failed(String, wait: Duration? = nil)
    }

    package var fetch: @Sendable (CallAddress) async -> Answer

    package init(_ fetch: @escaping @Sendable (CallAddress) async -> Answer) { self.fetch = fetch }

    /// For commands that use the data directory without a server.
    package static let none = UserKeyFetcher { _ in .failed("no server is running") }

    /// Applies the same rules as all outgoing calls: no address in a private network unless the operator allows it, and no
    /// redirects.
    ///
    /// - Parameter patience: The total time for the look-up, the connection and the response.
    static func over(_ caller: OutwardCaller, patience: Duration = .seconds(5)) -> UserKeyFetcher {
        UserKeyFetcher { address in
            let request = OutwardCaller.Request(
                method: .GET, address: address, headers: [("Accept", "application/jwk-set+json, application/json")],
                answerBytes: UserKeySet.longestBytes)
            guard let answer = await caller.ask(request, within: patience) else {
                return .failed("no complete answer arrived within \(patience)")
            }
            let result = answer.result
            return result.isSuccess ? .found(answer.body) : .failed(result.reason, wait: result.wait)
        }
    }
}

extension CallResult {
    /// A text for the operator's log.
    var reason: String {
        switch self {
        case .answered(let status, _): "the answer has status \(status)"
        case .failed(_, let detail): detail
        case .notMade(let reason), .impossible(let reason): reason
        }
    }
}
