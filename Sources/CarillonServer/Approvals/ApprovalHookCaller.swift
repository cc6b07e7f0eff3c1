package import CarillonCore
import CarillonWire

/// Sends calls to approval hooks.
package struct ApprovalHookCaller: Sendable {
    package struct Question: Sendable {
        package var address: CallAddress
        package var headers: [(name: String, value: String)]
        package var body: [UInt8]
    }

    package enum Answer: Sendable, Equatable {
        /// `wait` is the delay that a refusal contained.
        case answered(status: Int, body: [UInt8], wait: Duration? = nil)
        /// The reason, for the operator's log.
        case failed(String)
    }

    package var ask: @Sendable (Question) async -> Answer

    package init(_ ask: @escaping @Sendable (Question) async -> Answer) { self.ask = ask }

    /// For commands that use the data directory without a server.
    package static let none = ApprovalHookCaller { _ in .failed("no server is running") }

    static let patience = Duration.seconds(2)
    private static let answerBytes = 4096

    /// Applies the same rules for addresses as all outgoing calls.
    static func over(_ caller: OutwardCaller) -> ApprovalHookCaller {
        ApprovalHookCaller { question in
            let request = OutwardCaller.Request(
                address: question.address, headers: question.headers, body: question.body, answerBytes: answerBytes,
                wantsRefusals: true)
            guard let answer = await caller.ask(request, within: patience) else {
                return .failed("no complete answer arrived within \(patience)")
            }
            guard case .answered(let status, _) = answer.result else { return .failed(answer.result.reason) }
            return .answered(status: status, body: answer.body, wait: answer.result.wait)
        }
    }
}
